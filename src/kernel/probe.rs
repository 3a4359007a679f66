//! Whether the kernel supports a program type.

use super::log::{text, verdict};
use super::sys::{ProgFd, ProgRequest};
use crate::isa::RawInsn;
use crate::spec::{AttachRule, AttachType, ProgFlags, ProgType, Traits};
use crate::util::Errno;
use crate::verifier::LogLevel;

/// The result of loading the smallest program of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// It was accepted.
    Loads,
    /// The verifier ran: the type is supported, but needs more, such as an attach target.
    Known,
    /// It was refused before the verifier ran.
    Refused(Errno),
}

/// Loads the smallest program of a type.
pub(super) fn probe(prog_type: ProgType) -> Probe {
    let attach_type = match prog_type.info().attach {
        AttachRule::OneOf([first, ..]) => Some(*first),
        _ => None,
    };
    probe_for(prog_type, attach_type)
}

/// Loads the smallest program of a type with this expected attach type.
pub(super) fn probe_for(prog_type: ProgType, attach_type: Option<AttachType>) -> Probe {
    const LOG: usize = 1 << 12;
    // This type must be sleepable.
    let flags = match prog_type {
        ProgType::Syscall => ProgFlags::SLEEPABLE,
        _ => ProgFlags::empty(),
    };
    // r0 = 1 is in the return range of every type that has one.
    let insns = [
        RawInsn::new(0xb7, 0, 0, 0, 1),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let insns: Vec<u8> = insns.iter().flat_map(|insn| insn.to_bytes()).collect();
    let request = ProgRequest {
        prog_type: prog_type.number(),
        expected_attach_type: attach_type.map_or(0, AttachType::number),
        insns: &insns,
        license: c"GPL",
        name: Default::default(),
        flags: flags.bits(),
        attach_btf_id: u32::from(prog_type.info().traits.contains(Traits::ATTACH_BTF)),
        attach_prog_fd: 0,
        btf: None,
        func_info: &[],
        line_info: &[],
        maps: &[],
        log_level: LogLevel::STATISTICS.bits(),
        token: None,
    };
    let mut log = vec![0; LOG];
    let (result, _) = ProgFd::load(&request, &mut log);
    let verdict = verdict(result.err(), text(&log));
    match (verdict.errno, verdict.statistics) {
        (None, _) => Probe::Loads,
        (Some(_), Some(_)) => Probe::Known,
        (Some(errno), None) => Probe::Refused(errno),
    }
}
