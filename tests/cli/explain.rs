//! `bpflab explain`, and colours.

use crate::shared::command::bpflab;

const LOG: &str = "libbpf: prog 'on_write': BPF program load failed: Permission denied
libbpf: prog 'on_write': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
0: (b7) r1 = 12                       ; R1=12
1: (63) *(u32 *)(r10 -4) = r1         ; R1=12 R10=fp0 fp-8=mmmm????
2: (bf) r2 = r10                      ; R2=fp0 R10=fp0
3: (07) r2 += -4                      ; R2=fp-4
; __u64 *count = bpf_map_lookup_elem(&hist, &slot); @ null_check_missing.bpf.c:16
4: (18) r1 = 0xffff888104387c00       ; R1=map_ptr(map=hist,ks=4,vs=8)
6: (85) call bpf_map_lookup_elem#1    ; R0=map_value_or_null(id=1,map=hist,ks=4,vs=8)
; *count += 1; @ null_check_missing.bpf.c:18
7: (79) r1 = *(u64 *)(r0 +0)
R0 invalid mem access 'map_value_or_null'
processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
-- END PROG LOAD LOG --
libbpf: prog 'on_write': failed to load: -13
";

/// Runs it on a log, and gives the exit code and what is printed.
fn explain(name: &str, log: &str, words: &[&str]) -> (Option<i32>, String) {
    let file = std::env::temp_dir().join(format!("bpflab-{}-{name}.log", std::process::id()));
    std::fs::write(&file, log).expect("a file");
    let output = bpflab()
        .args(["explain", "--log"])
        .arg(&file)
        .args(words)
        .env_remove("NO_COLOR")
        .output()
        .expect("bpflab runs");
    let _ = std::fs::remove_file(&file);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text + &errors)
}

const OBJECT: &str = "tests/verifier_mistakes/null_check_missing.bpf.o";

#[test]
fn a_log_alone_and_with_its_object() {
    let (code, text) = explain("alone", LOG, &[]);
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "error[EACCES]: Register Type Safety: pointer used without a test for NULL",
        "--> null_check_missing.bpf.c:18",
        "R0 is what bpf_map_lookup_elem() returned",
        "help: test it first: `if (!pointer) return 0;`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, text) = explain("with", LOG, &["--object", OBJECT, "--btf", "own"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("null_check_missing.bpf.c:18:9"), "{text}");
    assert!(
        text.contains("the same error line at the same instruction"),
        "{text}"
    );
}

#[test]
fn another_object_and_another_verdict_are_told() {
    let other = LOG.replace("R0 invalid mem access 'map_value_or_null'", "R0 !read_ok");
    let (code, text) = explain("verdict", &other, &["--object", OBJECT, "--btf", "own"]);
    assert_eq!(code, Some(1), "{text}");
    let differs = "differs: reject at instruction 7: R0 invalid mem access 'map_value_or_null'";
    assert!(text.contains(differs), "{text}");
    let other = LOG.replace("3: (07) r2 += -4 ", "3: (1f) r2 -= r1 ");
    let (code, text) = explain("object", &other, &["--object", OBJECT, "--btf", "own"]);
    assert_eq!(code, Some(1), "{text}");
    let said = "instruction 3 of on_write is not the one in the log; explained without it";
    assert!(text.contains(said), "{text}");
}

#[test]
fn json_has_the_report() {
    let (_, text) = explain("json", LOG, &["--json", "--color", "always"]);
    let row: serde_json::Value = serde_json::from_str(text.trim()).expect("one line of JSON");
    assert_eq!(row["message"], "R0 invalid mem access 'map_value_or_null'");
    assert_eq!(
        (&row["program"], &row["errno"], &row["insn"]),
        (&"on_write".into(), &13.into(), &7.into())
    );
    assert_eq!(
        row["report"]["problem"],
        "pointer used without a test for NULL"
    );
    assert!(!text.contains('\x1b'));
}

#[test]
fn no_log_is_bad_input_and_an_unknown_error_a_negative_result() {
    let (code, text) = explain("none", "hello\n", &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no verifier log"), "{text}");
    let (code, text) = explain(
        "unknown",
        "0: (95) exit\nR0 is of no use on Tuesdays\n",
        &[],
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("bpflab has no advice for this error line"),
        "{text}"
    );
}

#[test]
fn colours_are_those_asked_for() {
    let has = |words: &[&str]| explain("colours", LOG, words).1.contains('\x1b');
    assert!(has(&["--color", "always"]));
    assert!(!has(&["--color", "never"]));
    assert!(!has(&[]), "a pipe has no colours");
    for (color, coloured) in [("always", true), ("auto", false)] {
        let mut verify = bpflab();
        verify.args(["verify", OBJECT, "--btf", "own", "--color", color]);
        let output = verify.env("NO_COLOR", "1").output().expect("bpflab runs");
        assert_eq!(output.stdout.contains(&0x1b), coloured, "{color}");
        assert_eq!(output.status.code(), Some(1));
    }
}
