//! `bpflab kernel`, whose output depends on the machine: its format and exit codes.

#![cfg(feature = "cli")]

use crate::shared;
use crate::shared::command;
use crate::shared::here;
use crate::shared::sample;

use std::path::PathBuf;
use std::process::{Command, Output};

use bpflab::btf::{Builder, Encoding, Linkage, Member, Param};
use bpflab::spec::BuildOptions;
use bpflab::util::TypeId;
use command::{bpflab, run};
use serde_json::Value;

use shared::{Need, skip};

fn rows(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn check_tells_what_there_is_or_what_is_missing() {
    let output = run(["kernel", "check", "--json"], "");
    let rows = rows(&output);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    let usable = row["usable"] == true;
    assert_eq!(output.status.code(), Some(if usable { 0 } else { 3 }));
    assert!(usable || row["missing"][0].is_string(), "{row}");
    assert_eq!(
        row["prog_types"]
            .as_array()
            .is_some_and(|types| !types.is_empty()),
        usable
    );
    assert!(
        row["release"]
            .as_str()
            .is_some_and(|release| release.contains('.'))
    );
}

#[test]
fn load_prints_a_verdict_for_each_case() {
    let arguments = [
        "kernel",
        "load",
        "--cases",
        "tests/cli/cases.jsonl",
        "--json",
    ];
    let output = run(arguments, "");
    let kernel = bpflab::kernel::Availability::probe();
    if !kernel.usable() {
        assert_eq!(output.status.code(), Some(3));
        skip(Need::Kernel, kernel.missing().join("; "));
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    let rows = rows(&output);
    let verdicts: Vec<_> = rows
        .iter()
        .filter_map(|row| row["verdict"].as_str())
        .collect();
    assert_eq!(
        verdicts,
        ["accept", "accept", "accept", "reject", "error", "error"]
    );
    assert_eq!(rows[0]["id"], "pass");
    assert_eq!(
        (&rows[0]["errno"], &rows[0]["processed"]),
        (&0.into(), &2.into())
    );
    assert_eq!(rows[3]["errno"], 13);
    assert_eq!(
        rows[3]["message"],
        "invalid bpf_context access off=4096 size=8"
    );
    assert_eq!(rows[4]["why"], "input");
}

#[test]
fn load_shows_the_log_of_an_objects_program() {
    if here::kernel().is_none() {
        return;
    }
    let object = "examples/bpf/write_hist.bpf.o";
    let output = run(["kernel", "load", object, "count_write", "--log", "2"], "");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.contains("\n0: ") && text.contains("\nprocessed "),
        "{text}"
    );
    assert!(text.ends_with("1 accepted, 0 rejected, 0 not judged\n"));

    let output = run(["kernel", "load", object, "count_reads"], "");
    assert_eq!(output.status.code(), Some(2));
}

/// A BTF file of a kernel with one tracepoint and one system call.
fn small_kernel() -> PathBuf {
    let mut btf = Builder::new();
    let void = btf.ptr(TypeId(0));
    let vec = btf.int("unsigned int", 4, Encoding::Unsigned);
    let param = |name, ty| Param { name, ty };
    let probe = btf.prototype(TypeId(0), &[param("__data", void), param("vec_nr", vec)]);
    btf.function("__probestub_softirq_entry", probe, Linkage::Static);
    let pointer = btf.ptr(probe);
    btf.typedef("btf_trace_softirq_entry", pointer);
    let member = |name, bit_offset| Member {
        name,
        ty: vec,
        bit_offset,
        bitfield: None,
    };
    let record = [member("ent", 0), member("vec", 64)];
    btf.structure("trace_event_raw_softirq_entry", 12, &record);
    btf.structure("syscall_trace_enter", 8, &[]);
    btf.function("__x64_sys_close", probe, Linkage::Static);
    let file = std::env::temp_dir().join(format!("bpflab-{}.btf", std::process::id()));
    let bytes = btf.build().expect("BTF").to_bytes();
    std::fs::write(&file, bytes).expect("a file");
    file
}

#[test]
fn tracepoints_of_a_btf_file() {
    let file = small_kernel();
    let file_name = file.to_str().expect("a path");
    let list = |arguments: &[&str]| {
        let words = ["kernel", "tracepoints", "--btf", file_name];
        let output = run(words.iter().chain(arguments), "");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        (output.status.code(), text)
    };
    let all = "syscalls:sys_enter_close  fd: unsigned int\n\
               syscalls:sys_exit_close  ret: long\n\
               softirq_entry  vec_nr: unsigned int\n";
    assert_eq!(list(&[]), (Some(0), all.to_owned()));
    let names = "syscalls:sys_enter_close\nsyscalls:sys_exit_close\nsoftirq_entry\n";
    assert_eq!(list(&["--names"]), (Some(0), names.to_owned()));

    // If the group is unknown, any group matches.
    let entry = "softirq_entry  vec_nr: unsigned int\n  \
                 offset  size  field\n       8     4  unsigned int vec\n";
    for pattern in ["softirq*", "irq:softirq_entry", "tp_btf/softirq_entry"] {
        assert_eq!(list(&[pattern]), (Some(0), entry.to_owned()), "{pattern}");
    }
    let attach = format!("{entry}  attach  raw_tp/softirq_entry, tp_btf/softirq_entry\n");
    assert_eq!(list(&["soft*", "-v"]), (Some(0), attach));

    let json = r#"{"tracepoint":"softirq_entry","group":null,"name":"softirq_entry","is_event":null,"id":null,"arguments":[{"name":"vec_nr","type":"unsigned int"}],"arguments_from":"btf","fields":[{"name":"vec","type":"unsigned int","offset":8,"size":4,"signed":false}],"fields_from":"btf","sections":["raw_tp/softirq_entry","tp_btf/softirq_entry"]}"#;
    assert_eq!(list(&["soft*", "--json"]), (Some(0), format!("{json}\n")));

    let both = list(&["softirq_entry,sys_exit_close", "--names"]);
    let names = "syscalls:sys_exit_close\nsoftirq_entry\n";
    assert_eq!(both, (Some(0), names.to_owned()), "as after perf's -e");
    for (pattern, hint) in [
        ("syscalls", "it is a group: 'syscalls:*' lists it"),
        ("raw_tp/sys_enter_close", "it is an event only"),
    ] {
        let (exit, text) = list(&[pattern]);
        assert_eq!(exit, Some(1));
        let start = format!("error: no tracepoint matches '{pattern}'; {hint}");
        assert!(text.starts_with(&start), "{text}");
    }

    let none = "error: no tracepoint matches 'softrq_entry'; similar are softirq_entry, \
                sys_enter_close, sys_exit_close\n";
    assert_eq!(list(&["softrq_entry"]), (Some(1), none.to_owned()));
    std::fs::remove_file(&file).expect("the file");
    let gone = list(&["softirq*"]);
    assert!(
        gone.0 == Some(2) && gone.1.contains("can't be read"),
        "{gone:?}"
    );
}

#[test]
fn tracepoints_of_this_kernel() {
    let output = run(["kernel", "tracepoints", "softirq_entry", "--json"], "");
    if output.status.code() == Some(3) {
        return skip(Need::Kernel, String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(output.status.code(), Some(0));
    let rows = rows(&output);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(row["name"], "softirq_entry");
    assert!(row["arguments"].is_null() || row["arguments"][0]["name"] == "vec_nr");
    assert_eq!(row["fields"][0]["name"], "vec");
    assert_eq!(row["fields"][0]["offset"], 8);
    if row["fields_from"] == "format" {
        assert_eq!(row["tracepoint"], "irq:softirq_entry");
        assert!(row["id"].as_u64().is_some_and(|id| id > 0), "{row}");
        assert_eq!(row["sections"][0], "tp/irq/softirq_entry");
    }
}

#[test]
fn functions_of_this_kernel_or_why_not() {
    let output = run(["kernel", "functions", "vfs_rea?", "--json"], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        let start = "error: the kernel does not list its functions: ";
        assert!(said.contains(start) || said.contains("tracefs"), "{said}");
        return skip(Need::Feature, said);
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let rows = rows(&output);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(row["function"], "vfs_read");
    assert!(row["module"].is_null() && row["count"] == 1, "{row}");
    assert!(row["kprobe"].is_boolean() && row["fentry"].is_boolean());
}

/// Runs the command in a mount namespace with an empty /sys, as in a bare container; none, with
/// a reason, if that is not possible.
fn without_sys(arguments: &[&str]) -> Option<Output> {
    let inner = bpflab();
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "sh",
        "-c",
        "mount -t tmpfs none /sys && exec \"$@\"",
        "sh",
    ]);
    command.arg(inner.get_program()).args(inner.get_args());
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut probe = Command::new("unshare");
    probe.args(["-m", "mount", "-t", "tmpfs", "none", "/sys"]);
    match probe.output() {
        Ok(output) if output.status.success() => Some(command.output().expect("a shell")),
        Ok(output) => {
            skip(Need::Tools, String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            skip(Need::Tools, format_args!("unshare: {error}"));
            None
        }
    }
}

#[test]
fn without_sys_each_cpu_is_watched() {
    if here::kernel().is_none() {
        return;
    }
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("CPUs");
    let last = online.trim().rsplit(['-', ',']).next().expect("a number");
    let commands = format!("taskset -c {last} true; taskset -c {last} true");
    let file = std::env::temp_dir().join(format!("bpflab-no-sys-{}.rec", std::process::id()));
    let file_name = file.to_str().expect("a path");
    let event = "sched/sched_process_exec";
    let arguments = [
        "record", event, "-o", file_name, "--json", "--", "sh", "-c", &commands,
    ];
    let Some(output) = without_sys(&arguments) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    std::fs::remove_file(&file).expect("the file");
    let rows = rows(&output);
    if rows[0]["exit_code"] != 0 {
        return skip(Need::Tools, format_args!("taskset: {text}"));
    }
    // The shell, and the two commands with their children.
    assert_eq!(rows[0]["tracepoints"][0]["samples"], 5, "{}", rows[0]);
    assert_eq!(rows[0]["lost"], 0);
}

/// The rows of `bpflab verify … --vs-kernel`.
fn beside_the_kernel(arguments: &[&str]) -> Vec<Value> {
    let common = ["verify", "--vs-kernel", "--json", "--report", "never"];
    let output = run(common.iter().chain(arguments), "");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    rows(&output)
}

/// `__bpf_prog_map_compatible` (`kernel/bpf/core.c`).
#[test]
fn a_prog_array_of_another_program_type_is_no_verdict() {
    if here::judge().is_none() {
        return;
    }
    let object = "tests/objects/tail_calls.bpf.o";
    let rows = beside_the_kernel(&[object, "--type", "to_last=perf_event"]);
    let verdicts: Vec<_> = rows
        .iter()
        .map(|row| (&row["prog_type"], &row["kernel"]["verdict"]))
        .collect();
    let raw = Value::from("raw_tracepoint");
    let perf = Value::from("perf_event");
    let accept = Value::from("accept");
    assert_eq!(
        verdicts,
        [&raw, &raw, &perf, &raw].map(|prog_type| (prog_type, &accept))
    );
}

/// `CONFIG_KALLSYMS_ALL`.
#[test]
fn variables_have_addresses_where_the_kernel_knows_them() {
    if here::judge().is_none() {
        return;
    }
    let rows = beside_the_kernel(&["tests/objects/ksyms.bpf.o", "read_variable"]);
    assert_eq!(rows[0]["match"]["verdict"], true, "{}", rows[0]);
    let known = rows[0]["kernel"]["verdict"] == "accept";
    let build = bpflab::kernel::running_config().expect("verdicts").build;
    assert_eq!(build.contains(BuildOptions::KALLSYMS_ALL), known);
}

/// The report of a reject is made from the kernel's log, and says what `verify` says.
#[test]
fn rejects_are_explained_from_the_log_as_verify_explains_them() {
    if here::judge().is_none() {
        return;
    }
    let objects = std::fs::read_dir("tests/verifier_mistakes").expect("the folder");
    let objects = objects.map(|entry| entry.expect("an entry").path());
    let objects = objects.filter(|path| path.to_string_lossy().ends_with(".bpf.o"));
    let mut objects: Vec<_> = objects.collect();
    objects.sort();
    let objects: Vec<_> = objects.into_iter().step_by(sample::step()).collect();
    let of = |verb: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bpflab"));
        let output = command.args(verb).arg("--json").args(&objects).output();
        rows(&output.expect("bpflab runs"))
    };
    let kernel = of(&["kernel", "load"]);
    let ours = of(&["verify"]);
    let mut compared = 0;
    // Of a call with a parameter that has no size, the kernel says why above its last line only.
    let is_told =
        |row: &&Value| row["object"] != "tests/verifier_mistakes/parameter_without_type.bpf.o";
    let rejects = kernel.iter().filter(|row| row["verdict"] == "reject");
    for row in rejects.filter(is_told) {
        let same =
            |other: &&Value| other["object"] == row["object"] && other["program"] == row["program"];
        let ours = ours.iter().find(same).expect("verify judges it, too");
        for key in ["problem", "help"] {
            assert_eq!(
                row["report"][key], ours["report"][key],
                "{key} of {}: {row}",
                row["object"]
            );
        }
        compared += 1;
    }
    let least = 45 / sample::step();
    assert!(compared > least, "only {compared} rejects were explained");
}
