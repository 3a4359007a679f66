//! The running kernel is one more engine: programs made up of what the language defines
//! (`bpflab::gen`) run there through `BPF_PROG_TEST_RUN`, and give the same return value,
//! packet, context and maps as in the checked engine. Skipped where no program can be
//! loaded.
//!
//! What the language leaves undefined is not made: bytes of the stack that nobody wrote,
//! bits of addresses. What depends on the machine (time, chance, the CPU) is asked for
//! and forgotten; the tally counts it. Our machine is CPU 0, the kernel's run may be on
//! any: values of per-CPU maps are compared without the number of the CPU.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "kernel/here.rs"]
mod here;
#[path = "equality/law.rs"]
mod law;
mod shared;
#[path = "equality/tally.rs"]
mod tally;

use bpflab::compare::{Engine, Kernel, Subject, Unable, difference};
use bpflab::r#gen::Options;
use bpflab::spec::ProgType;

use law::hold;
use tally::Tally;

/// The types that `BPF_PROG_TEST_RUN` runs and that are made up.
const TYPES: [ProgType; 6] = [
    ProgType::Xdp,
    ProgType::SchedCls,
    ProgType::SocketFilter,
    ProgType::CgroupSkb,
    ProgType::Syscall,
    ProgType::RawTracepoint,
];

/// Runs a subject in the kernel, which has to say what the checked engine says.
fn as_in_the_kernel(tally: &mut Tally, subject: &Subject) -> Result<(), String> {
    let checked = tally.agree(subject, &mut [])?;
    let answer = match Kernel.run(subject) {
        Ok(answer) => answer,
        Err(Unable::Refused(why)) => return Err(format!("the kernel refuses it: {why}")),
        Err(error) => return Err(error.to_string()),
    };
    if let Some(difference) = difference(&checked, &answer) {
        return Err(format!("in the kernel: {difference}"));
    }
    let (all, _) = tally.runs.entry("kernel".to_owned()).or_default();
    *all += 1;
    Ok(())
}

#[test]
fn the_kernel_gives_the_same_answer() {
    if here::kernel().is_none() {
        return;
    }
    for prog_type in TYPES {
        let options = Options {
            prog_type: Some(prog_type),
            defined: true,
            ..Options::default()
        };
        let tally = hold(prog_type.name(), 60, options, as_in_the_kernel);
        tally.check();
        assert!(tally.accepted() >= 0.9 && tally.faults == 0, "{tally:?}");
    }
}
