//! Each form of tracing in the running kernel: recorded while a command runs, and replayed on
//! every engine with the same verdict. Most kernels lack some: `docs/live.md` has the table, made
//! in virtual machines.

use std::process::Command;

use bpflab::Object;
use bpflab::btf::Kind;
use bpflab::compare::live::LiveOptions;
use bpflab::compare::replay::Word;

use crate::run::{compare_if, events};
use crate::shared::{Need, skip};
use crate::{ANY_ORDER, FINE, work};

/// An object of `tests/objects`.
pub fn object(name: &str) -> Object {
    let path = format!(
        "{}/tests/objects/form_{name}.bpf.o",
        env!("CARGO_MANIFEST_DIR")
    );
    Object::open(path).unwrap()
}

/// Compares a form while a command does something, if the kernel has what it needs.
#[track_caller]
fn check(name: &str, need: Need, mut command: Command, least: u64, words: &[Word]) {
    compare(name, &object(name), need, &mut command, least, words);
}

#[track_caller]
pub fn compare(
    name: &str,
    object: &Object,
    need: Need,
    command: &mut Command,
    least: u64,
    words: &[Word],
) {
    let options = LiveOptions::default();
    if let Some(done) = compare_if(need, name, object, &options, command) {
        done.expect(least, words);
        done.expect_each(1);
        if ["iterators", "xdp", "xdp_count", "tc", "cgroup"].contains(&name) {
            done.expect_anywhere();
        }
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

/// The functions of a session have no argument before Linux 7, and the context since then.
#[test]
fn sessions() {
    let cookie =
        bpflab::kernel::running_btf().and_then(|btf| btf.find("bpf_session_cookie", Kind::Func));
    let Some(prototype) = cookie.and_then(|function| function.target()) else {
        skip(
            Need::Feature,
            "this kernel has no bpf_session_cookie (6.10)",
        );
        return;
    };
    let name = match prototype.params().count() {
        0 => "session",
        _ => "session.ctx",
    };
    let writes = work::command("writes", events());
    check(name, Need::Feature, writes, events(), FINE);
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

/// A cgroup that is removed on drop.
struct Cgroup(String);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn hooks_of_a_cgroup() {
    let root = "/sys/fs/cgroup";
    if !std::path::Path::new(root).join("cgroup.procs").exists() {
        skip(
            Need::Feature,
            format_args!("{root} is no cgroup of version 2"),
        );
        return;
    }
    let cgroup = Cgroup(format!("{root}/bpflab-forms-{}", std::process::id()));
    std::fs::create_dir(&cgroup.0).unwrap();
    let mut object = object("cgroup");
    for program in ["sent", "addressed"] {
        object
            .entry_mut(program)
            .unwrap()
            .set_attach_target(&*cgroup.0);
    }
    let mut grouped = work::command(&format!("grouped {}", cgroup.0), events());
    compare(
        "cgroup",
        &object,
        Need::Feature,
        &mut grouped,
        events(),
        ANY_ORDER,
    );
}
