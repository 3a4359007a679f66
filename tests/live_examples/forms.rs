//! Each form of tracing in the running kernel: recorded while a command runs, and replayed on
//! every engine with the same verdict. Most kernels lack some: `docs/live.md` has the table, made
//! in virtual machines.

use std::process::Command;

use bpflab::Object;
use bpflab::compare::live::LiveOptions;
use bpflab::compare::replay::Word;

use crate::run::{compare_if, events};
use crate::shared::{Need, skip};
use crate::{ANY_ORDER, FINE, work};

/// An object of `tests/objects`.
fn object(name: &str) -> Object {
    let path = format!(
        "{}/tests/objects/form_{name}.bpf.o",
        env!("CARGO_MANIFEST_DIR")
    );
    Object::open(path).unwrap()
}

/// Compares a form while a command does something, if the kernel has what it needs.
#[track_caller]
fn check(name: &str, need: Need, mut command: Command, least: u64, words: &[Word]) {
    let object = object(name);
    let options = LiveOptions::default();
    if let Some(done) = compare_if(need, name, &object, &options, &mut command) {
        done.expect(least, words);
        done.expect_each(1);
    }
}

#[test]
fn fentry_and_fexit() {
    let writes = work::command("writes", events());
    check("trampolines", Need::Trampolines, writes, 2 * events(), FINE);
}

/// The command checks that every third of its calls was refused: the recorded programs act on
/// the kernel as the object's would.
#[test]
fn return_values_that_are_modified() {
    let asks = work::command("asks", events());
    check("fmod_ret", Need::Trampolines, asks, events(), FINE);
}

#[test]
fn hooks_of_security_modules() {
    let asks = work::command("asks", events());
    check("lsm", Need::Lsm, asks, events(), FINE);
}

#[test]
fn system_calls_as_functions() {
    let writes = work::command("writes", events());
    check("syscalls", Need::Kprobes, writes, 2 * events(), FINE);
}

#[test]
fn many_functions() {
    let writes = work::command("writes", events());
    check("multi", Need::Feature, writes, 2 * events(), FINE);
}

#[test]
fn sessions() {
    let types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let name = b"bpf_session_cookie";
    if !types.windows(name.len()).any(|bytes| bytes == name) {
        skip(
            Need::Feature,
            "this kernel has no bpf_session_cookie (6.10)",
        );
        return;
    }
    let writes = work::command("writes", events());
    check("session", Need::Feature, writes, events(), FINE);
}

#[test]
fn three_kinds_of_tracepoints() {
    let writes = work::command("writes", events());
    check(
        "tracepoints",
        Need::Feature,
        writes,
        3 * events(),
        ANY_ORDER,
    );
}

#[test]
fn functions_of_the_command() {
    let requests = work::command("requests", events());
    check("uprobes", Need::Feature, requests, 2 * events(), FINE);
}

#[test]
fn functions_of_the_command_by_pattern() {
    let requests = work::command("requests", events());
    check("uprobe_multi", Need::Feature, requests, 2 * events(), FINE);
}

/// Iterators run in the recorder's process, once, when the command has ended.
#[test]
fn iterators() {
    let writes = work::command("writes", 10);
    check("iterators", Need::Feature, writes, 4, FINE);
}
