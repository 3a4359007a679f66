//! What a user gives programs to read, and what becomes of packets: `bpflab run`.

use crate::shared::command::run;

use serde_json::Value;

/// A capture of the packets that a program let through is a capture again, without those that it
/// dropped.
#[test]
fn packets_that_pass_are_written() {
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("passed.pcap");
    let out = out.to_str().unwrap();
    let object = "tests/objects/form_xdp.bpf.o";
    let frame = "ffffffffffff0200000000aa08004500001d0000000040110000\
                 7f0000017f0000010001003500091234";
    let run = |data: &str, more: &[&str]| {
        let words = ["run", object, "--data", data, "--json"];
        let output = run(words.iter().chain(more), "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run(&format!("{frame}41"), &["--out", out]);
    let row: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(row["kind"], "packet");
    assert!(
        row["after"]["bytes"]
            .as_str()
            .unwrap()
            .ends_with("0009000041")
    );
    // The checksum is 0 already: nothing changes.
    let again = run(out, &[]);
    assert!(!again.contains("\"kind\":\"packet\""), "{again}");
    let text = std::fs::read(out).unwrap();
    assert_eq!(text.len(), 24 + 16 + 43);
}

/// What ran before a wrong line is not lost.
#[test]
fn a_wrong_line_of_an_events_file_keeps_the_results_before_it() {
    let lines = "{\"filename\":\"/a\"}\n{\"filename\":\"/b\"}\n{\"dfd\":[]}\n";
    let words = ["run", "tests/objects/opens.bpf.o", "--events", "-"];
    let output = run(words, lines);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("on_open: 2 runs returned 0"), "{text}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: standard input:3: "), "{error}");
}

/// Constants of a dump are those that the program is verified and run with.
#[test]
fn constants_are_read_from_a_dump_of_their_map() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let forms = [
        r#"[{"key":["0x00","0x00","0x00","0x00"],"value":["0x01","0x00","0x00","0x00"]}]"#,
        r#"[{"value":{".rodata":[{"watched_only":1}]}}]"#,
    ];
    for (number, form) in forms.iter().enumerate() {
        let file = folder.join(format!("rodata{number}.json"));
        std::fs::write(&file, form).unwrap();
        let file = file.to_str().unwrap();
        let object = "tests/objects/opens.bpf.o";
        let output = run(["run", object, "--rodata", file], "");
        let text = String::from_utf8(output.stdout).unwrap();
        // Only processes in `watched` are reported, and there is none.
        assert!(!text.contains("opens: {"), "{text}");
        let output = run(["verify", object, "--rodata", file, "--json"], "");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\"verdict\":\"accept\""), "{text}");
    }
    let output = run(
        ["run", "tests/objects/opens.bpf.o", "--rodata", "Cargo.toml"],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
}
