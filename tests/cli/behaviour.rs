//! Behaviour that transcripts can't show: help, closed pipes, files that only some machines
//! have.

use crate::shared::command;

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use bpflab::btf::{Builder, Encoding, Member};
use command::{bpflab, run};

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}

/// A file with these bytes, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("bpflab-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_verb_has_help_with_examples() {
    let output = run(["--help"], "");
    assert_eq!(output.status.code(), Some(0));
    let verbs = stdout(&output)
        .lines()
        .skip_while(|line| *line != "Commands:");
    let verbs = verbs.skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<_> = verbs
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"run"), "{verbs:?}");
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        let output = run([verb, "--help"], "");
        assert_eq!(output.status.code(), Some(0), "{verb}");
        let help = stdout(&output);
        assert!(help.contains("Examples:\n  "), "{verb}: {help}");
        assert!(help.contains("--json"), "{verb}: {help}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let output = run(["--version"], "");
    assert_eq!(
        stdout(&output),
        concat!("bpflab ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// A tracepoint and a probe have the same event, however it is written.
#[test]
fn events_are_named_as_sections_and_as_probes() {
    let write_hist = "examples/bpf/write_hist.bpf.o";
    let fired = |object: &str, event: &str| {
        let output = run(["run", object, "--btf", "own", "--event", event], "");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{event}: {}",
            stderr(&output)
        );
        stdout(&output).to_owned()
    };
    let plain = fired(write_hist, "syscalls/sys_enter_write");
    assert!(plain.starts_with("count_write: returned 0"), "{plain}");
    for event in [
        "syscalls:sys_enter_write",
        "tp/syscalls/sys_enter_write",
        "tracepoint/syscalls/sys_enter_write",
        "tracepoint:syscalls:sys_enter_write",
        "t:syscalls:sys_enter_write",
    ] {
        assert_eq!(fired(write_hist, event), plain, "{event}");
    }
    // A kind selects among the programs of a function: only `enter` is a kprobe.
    let latency = "examples/bpf/vfs_read_latency.bpf.o";
    for event in ["kprobe/vfs_read", "kprobe:vfs_read", "k:vfs_read"] {
        let text = fired(latency, event);
        assert!(
            text.contains("enter: ") && !text.contains("leave: "),
            "{event}: {text}"
        );
    }
    let text = fired(latency, "kretprobe:vfs_read");
    assert!(
        text.contains("leave: ") && !text.contains("enter: "),
        "{text}"
    );
}

/// libbpf does not know such a section, either; the error names the one that was meant.
#[test]
fn a_mistyped_section_is_told_with_the_nearest() {
    let known = std::fs::read("tests/objects/unknown_section.bpf.o").expect("the object");
    let (before, after) = (b"bpflab/unheard_of", b"tracepont/abc/def");
    let mut bytes = known;
    let at = |bytes: &[u8]| bytes.windows(17).position(|window| window == before);
    while let Some(at) = at(&bytes) {
        bytes[at..at + 17].copy_from_slice(after);
    }
    let file = Scratch::new("mistyped.o", &bytes);
    let output = run(["inspect", file.path(), "--btf", "own"], "");
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.contains("rename it (`tp/abc/def`?)"), "{text}");
    let output = run(["verify", file.path(), "--btf", "own"], "");
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(
        text.contains("no program type; rename it (`tp/abc/def`?) or give one: --type "),
        "{text}"
    );
}

#[test]
fn bad_usage_is_told_in_both_forms() {
    let output = run(["inspekt", "x.o"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a similar subcommand exists: 'inspect'"));
    let output = run(["inspect", "--json"], "");
    assert_eq!(output.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).expect("JSON");
    assert_eq!(json["exit_code"], 2);
    assert!(
        json["error"]
            .as_str()
            .is_some_and(|text| text.contains("<FILE>"))
    );
}

/// The exit code and the errors of a command whose output nobody reads.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = bpflab()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    (output.status.code(), stderr(&output).to_owned())
}

#[test]
fn a_closed_pipe_is_no_error() {
    let listing = unread(&["disasm", "--json", "tests/objects/map_kinds.bpf.o"]);
    assert_eq!(listing, (Some(0), String::new()));
    let rejected = "tests/verifier_mistakes/access_misaligned.bpf.o";
    assert_eq!(unread(&["verify", rejected]), (Some(1), String::new()));
}

/// The machine code depends on the machine; the BPF instructions next to it do not.
#[cfg(feature = "jit")]
#[test]
fn machine_code_stands_beside_the_instructions() {
    let file = "tests/objects/subprograms.bpf.o";
    let plain = run(["disasm", file, "--btf", "own", "--source"], "");
    for (machine, ret) in [("x86-64", "c3"), ("arm64", "c0035fd6")] {
        let option = format!("--jit={machine}");
        let listed = run(["disasm", &option, file, "--btf", "own", "--source"], "");
        assert_eq!((listed.status.code(), stderr(&listed)), (Some(0), ""));
        let is_code = |line: &&str| line.starts_with("  ") && line.contains(": ");
        let (code, rest): (Vec<_>, Vec<_>) = stdout(&listed).lines().partition(is_code);
        assert!(code.iter().any(|line| line.ends_with(": ret")), "{machine}");
        for line in stdout(&plain).lines().filter(|line| !line.is_empty()) {
            let is_there = rest.iter().any(|there| there.starts_with(line));
            assert!(is_there, "{machine}: {line}");
        }
        let rows = run(["disasm", &option, file, "--btf", "own", "--json"], "");
        let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        let rows: Vec<_> = stdout(&rows).lines().map(row).collect();
        assert!(rows.iter().all(|row| row["machine"] == machine));
        let functions = ["calls_both", "deep", "square", "clamp"];
        for function in functions {
            let ends = |row: &serde_json::Value| row["function"] == function && row["bytes"] == ret;
            assert!(rows.iter().any(ends), "{machine}: {function}");
        }
    }
}

/// The file is where perf looks for it, named by the process id.
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
#[test]
fn perf_is_told_of_machine_code() {
    let file = "tests/objects/subprograms.bpf.o";
    let child = bpflab()
        .args(["run", file, "calls_both", "--btf", "own", "--engine", "jit"])
        .arg("--perf-map")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let map = format!("/tmp/perf-{}.map", child.id());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(0));
    let text = std::fs::read_to_string(&map).expect("it was written");
    std::fs::remove_file(&map).expect("it is there");
    for name in ["bpf_prog_calls_both", "bpf_prog_calls_both.square"] {
        assert!(text.lines().any(|line| line.ends_with(name)), "{text}");
    }
}

#[test]
fn colours_are_for_terminals_only() {
    for arguments in [
        &["run", "--help"][..],
        &["inspect", "nothing.o"],
        &["inspect"],
    ] {
        let output = run(arguments, "");
        assert!(
            !output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_file_of_btf_alone_is_printed_as_c() {
    let mut builder = Builder::new();
    let int = builder.int("int", 4, Encoding::Signed);
    let member = Member {
        name: "answer",
        ty: int,
        bit_offset: 0,
        bitfield: None,
    };
    builder.structure("question", 4, &[member]);
    let btf = builder.build().expect("BTF");
    let file = Scratch::new("question.btf", &btf.to_bytes());
    let output = run(["inspect", "--btf-c", file.path()], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("struct question {\n\tint answer;\n};"));

    // A module's types build on the kernel's.
    let mut module = Builder::split(&btf);
    let pointer = module.ptr(int);
    module.typedef("int_pointer", pointer);
    let split = module.build().expect("split BTF");
    let module = Scratch::new("module.btf", &split.to_bytes());
    let output = run(
        ["inspect", "--btf-c", module.path(), "--btf", file.path()],
        "",
    );
    assert!(
        stdout(&output).contains("typedef int *int_pointer;"),
        "{}",
        stderr(&output)
    );
}

/// A case has the ids of the kernel's functions. Of the running kernel, which judges it, they are known.
#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn cases_that_the_running_kernel_judges_have_its_ids() {
    if crate::shared::here::judge().is_none() {
        return;
    }
    let types = bpflab::kernel::running_btf().expect("the running kernel's types");
    let call = |name: &str| {
        let kfunc = types.find(name, bpflab::btf::Kind::Func).expect("a kfunc");
        let id: String = kfunc
            .id()
            .0
            .to_le_bytes()
            .map(|byte| format!("{byte:02x}"))
            .concat();
        format!("85200000{id}")
    };
    let (lock, unlock) = (call("bpf_rcu_read_lock"), call("bpf_rcu_read_unlock"));
    let case = format!(
        "{{\"id\":\"calls\",\"prog_type\":1,\"license\":\"GPL\",\
         \"insns\":\"{lock}{unlock}b7000000000000009500000000000000\"}}\n"
    );
    let file = Scratch::new("calls.jsonl", case.as_bytes());
    let alone = run(["verify", "--cases", file.path()], "");
    assert!(
        stdout(&alone).contains("1 not judged"),
        "{}",
        stdout(&alone)
    );
    let both = run(["verify", "--cases", file.path(), "--vs-kernel"], "");
    assert!(
        stdout(&both).contains("1 compared: 1 match"),
        "{}",
        stdout(&both)
    );
    assert_eq!(both.status.code(), Some(0), "{}", stderr(&both));
}

#[test]
fn the_suites_order_of_arguments_is_understood() {
    // r0 = *(u16 *)(r1 + 1); r0 += r2; exit
    let program = "69 10 01 00 00 00 00 00 0f 20 00 00 00 00 00 00 95 00 00 00 00 00 00 00\n";
    let output = run(["aa 01 02", "conformance-plugin"], program);
    assert_eq!((stdout(&output), output.status.code()), ("204\n", Some(0)));
    let output = run(["conformance-plugin", "aa 01 02"], program);
    assert_eq!(stdout(&output), "204\n");
}

#[test]
fn the_plugin_fails_where_a_program_does() {
    // Reads past the end of the memory.
    let program = "79 10 00 00 00 00 00 00 95 00 00 00 00 00 00 00";
    let output = run(["conformance-plugin", "aa"], program);
    assert_eq!((stdout(&output), output.status.code()), ("", Some(1)));
    assert!(
        stderr(&output).contains("7 bytes past its end"),
        "{}",
        stderr(&output)
    );
    for (memory, program) in [("a", "95"), ("", "xyz"), ("", ""), ("", "9500000000")] {
        let output = run(["conformance-plugin", memory], program);
        assert_eq!(output.status.code(), Some(2), "{memory} {program}");
    }
}

#[test]
fn the_plugin_runs_on_the_fast_engines_what_the_verifier_accepts() {
    // r0 = *(u16 *)(r1 + 1); r0 += r2; exit
    let program = "69 10 01 00 00 00 00 00 0f 20 00 00 00 00 00 00 95 00 00 00 00 00 00 00\n";
    let plugin =
        |memory, program, engine| run(["conformance-plugin", memory, "--engine", engine], program);
    let output = plugin("aa 01 02", program, "interp");
    assert_eq!((stdout(&output), output.status.code()), ("204\n", Some(0)));
    let output = plugin("aa 01", program, "interp");
    assert_eq!((stdout(&output), output.status.code()), ("", Some(3)));
    let told = stderr(&output);
    assert!(
        told.contains("can't run on engine interp: the verifier rejects the program"),
        "{told}"
    );
    assert!(
        told.contains("R1 min value is outside of the allowed memory range"),
        "{told}"
    );
    // r0 = 64 bits; exit
    let wide = "18 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 95 00 00 00 00 00 00 00";
    let output = plugin("", wide, "interp");
    assert_eq!(stdout(&output), "200000001\n");
    let output = plugin("aa 01 02", program, "jit");
    if cfg!(all(feature = "jit", target_arch = "x86_64")) {
        assert_eq!(stdout(&output), "204\n", "{}", stderr(&output));
    }
}

#[test]
fn unverified_programs_run_only_if_asked_for() {
    let rejected = (
        "tests/objects/past_the_end.bpf.o",
        "on_write",
        "is rejected",
    );
    let object_used = (
        "tests/objects/kfunc_misuse.bpf.o",
        "drops_twice",
        "is rejected",
    );
    for (object, program, what) in [rejected, object_used] {
        for verb in ["run", "bench"] {
            let output = run([verb, object, program, "--btf", "own"], "");
            let told = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{verb} {object}: {told}");
            assert_eq!(stdout(&output), "", "{verb} {object}");
            let error = format!("error: program '{program}' {what}: ");
            assert!(told.contains(&error) && told.contains("= at: "), "{told}");
            assert!(told.contains("--unverified runs"), "{told}");
        }
        let asked = ["run", object, program, "--btf", "own", "--unverified"];
        let output = run(asked, "");
        let told = stderr(&output);
        let warning = format!("warning: program '{program}' {what}");
        assert!(told.contains(&warning), "{told}");
    }
    let output = run(["run", "--cases", "tests/cli/cases.jsonl"], "");
    assert!(
        stdout(&output).contains("BROKEN  wild: program 'wild' is rejected: "),
        "{}",
        stdout(&output)
    );
}

/// A rejected case only runs with --unverified; then its row and the sum say which engine ran
/// it and why.
#[test]
fn rejected_cases_run_only_where_it_is_asked_for() {
    let cases = |more: &[&str]| {
        let arguments = ["run", "--cases", "tests/cli/rejected.jsonl", "--json"];
        let output = run(arguments.iter().chain(more), "");
        let rows = stdout(&output).lines();
        let rows: Vec<serde_json::Value> = rows
            .map(|row| serde_json::from_str(row).expect("JSON"))
            .collect();
        (output.status.code(), rows)
    };
    for engine in ["checked", "interp", "jit"] {
        let (code, rows) = cases(&["--engine", engine]);
        assert_eq!(code, Some(1));
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&row["ok"], &row["engine"]), (&false.into(), &().into()));
        let error = row["error"].as_str().expect("a reason");
        assert!(
            error.contains("is rejected: R2 !read_ok; --unverified"),
            "{error}"
        );

        let (code, rows) = cases(&["--engine", engine, "--unverified"]);
        assert_eq!(code, Some(0));
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(
            (&row["ok"], &row["engine"]),
            (&true.into(), &"checked".into())
        );
        let why = row.get("engine_why").and_then(|why| why.as_str());
        let rejected = "the verifier rejects the program: R2 !read_ok";
        assert_eq!(why, (engine != "checked").then_some(rejected), "{engine}");
    }
}

#[test]
fn the_plugin_takes_elf_files() {
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/objects/license_none.bpf.o"
    );
    let bytes = std::fs::read(object).expect("an object");
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x} ").expect("a string");
        hex
    });
    let output = run(["conformance-plugin", "--elf"], &hex);
    assert_eq!(stdout(&output), "0\n", "{}", stderr(&output));
}

#[test]
fn the_tracefs_format_of_an_event_is_enough() {
    let format = "name: request\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int nr;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\n\
        print fmt: \"\"\n";
    let file = Scratch::new("format", format.as_bytes());
    let object = "examples/bpf/write_hist.bpf.o";
    let event = ["--event", "app/request", "--format", file.path()];
    let set = ["--set", "args=[0, 0, 70000]", "--json", "--btf", "own"];
    let arguments = [&["run", object, "count_write"][..], &event, &set].concat();
    let output = run(arguments, "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("\"entries\":[{\"key\":16,\"value\":1}]"));
}

/// A finding is printed when it is found, not when the campaign ends.
#[test]
fn findings_are_printed_at_once() {
    let mut campaign = bpflab()
        .args(["fuzz", "--oracle", "memory", "--no-kernel", "--no-reduce"])
        .args(["--seconds", "600", "--findings", "1000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(campaign.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    let goes_on = campaign.try_wait().expect("its state").is_none();
    campaign.kill().expect("it can be ended");
    campaign.wait().expect("it ends");
    assert!(first.contains("\"kind\":\"finding\""), "{first}");
    assert!(goes_on, "the campaign ended first");
}
