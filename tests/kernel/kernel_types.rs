//! Programs on the kernel's variables and on kernel pointers in values, right and wrong: both sides
//! give the same verdict. What the running kernel is built without, others judge in virtual machines.

use std::path::Path;
use std::sync::Arc;

use bpflab::Object;
use bpflab::kernel::NoVerdictKind;
use bpflab::spec::Capabilities;
use bpflab::verifier::verify;

use super::verdicts::{options, parts, theirs};
use crate::shared::here;
use crate::shared::{Need, skip_part};

/// Compares the programs of an object; returns how many both accept and reject.
fn compare(path: &str) -> [usize; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let object = Object::open(path).expect("an object");
    let options = options(Capabilities::all());
    let mut counts = [0; 2];
    for program in object.programs() {
        let program = program.expect("a program");
        let name = program.name.clone();
        let theirs = match theirs(&program, Capabilities::all()) {
            Ok(theirs) => theirs,
            Err(none) if none.kind == NoVerdictKind::Feature => {
                skip_part(Need::Feature, format_args!("{name}: {none}"));
                continue;
            }
            Err(none) => panic!("{name}: {none}"),
        };
        let ours = verify(&Arc::new(program), &options).verdict;
        assert_eq!(parts(&ours), parts(&theirs), "{name}");
        counts[usize::from(!ours.is_accepted())] += 1;
    }
    counts
}

#[test]
fn kernel_pointers_in_values_are_judged_alike() {
    if here::judge().is_some() {
        assert_eq!(compare("tests/kernel_types/values.bpf.o"), [6, 5]);
    }
}

/// Where the kernel has no addresses of variables, it rejects all of them.
#[test]
fn variables_of_the_kernel_are_judged_alike() {
    if here::judge().is_none() {
        return;
    }
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let expected = match symbols.lines().any(|line| line.ends_with(" runqueues")) {
        true => [2, 5],
        false => [0, 7],
    };
    assert_eq!(compare("tests/kernel_types/variables.bpf.o"), expected);
}

/// Where the connection tracker is part of the kernel; `tests/cli/guest.rs` has it as a module.
#[test]
fn writes_to_connections_are_judged_alike() {
    if here::judge().is_none() {
        return;
    }
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !symbols
        .lines()
        .any(|line| line.ends_with(" bpf_ct_release"))
    {
        return skip_part(Need::Feature, "the connection tracker is not in the kernel");
    }
    let [accepted, rejected] = compare("tests/attach_targets/conntrack.bpf.o");
    assert!(accepted >= 3 && rejected >= 7, "{accepted} {rejected}");
}
