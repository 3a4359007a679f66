//! The attributes of a load, checked before verification (`bpf_prog_load`,
//! `bpf_prog_load_check_attach`, `kernel/bpf/syscall.c`). Errors have a number but no
//! message.

use crate::program::{AttachProgram, Program};
use crate::spec::Capabilities;
use crate::spec::limits::{MAX_BTF_TYPE, MAX_INSNS, MAX_INSNS_UNPRIVILEGED};
use crate::spec::{ProgFlags, ProgType};
use crate::verifier::Options;
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

/// Program types whose attach target may be a BTF type.
const BY_TYPE: &[ProgType] = &[
    ProgType::Tracing,
    ProgType::Lsm,
    ProgType::StructOps,
    ProgType::Ext,
];

/// What a loader needs to load the program and to create its maps.
pub(in crate::verifier) fn required(program: &Program) -> Capabilities {
    Capabilities::for_program(program.prog_type) | super::maps::required(program)
}

/// Checks the attributes in the kernel's order, for a loader with these capabilities. Its
/// maps come first: they exist when the program is loaded.
pub(super) fn check(program: &Program, options: &Options, loader: Capabilities) -> VerifyResult {
    if !super::maps::may_create(program, options) {
        reject!(EPERM, "");
    }
    let prog_type = program.prog_type;
    let unknown = program.flags.bits() & !ProgFlags::all().bits() != 0;
    // Programs here have no token descriptor.
    if unknown || program.flags.contains(ProgFlags::TOKEN_FD) {
        reject!(EINVAL, "");
    }
    let most = if loader.allow(Capabilities::BPF) {
        MAX_INSNS
    } else {
        MAX_INSNS_UNPRIVILEGED
    };
    if program.insns.is_empty() || program.insns.len() > most {
        reject!(E2BIG, "");
    }
    if !loader.allow(Capabilities::for_program(prog_type)) {
        reject!(EPERM, "");
    }
    if let Some(id) = program.attach_btf_id
        && (id.0 > MAX_BTF_TYPE || !BY_TYPE.contains(&prog_type))
    {
        reject!(EINVAL, "");
    }
    let attaches = match program.attach_prog {
        AttachProgram::None => true,
        AttachProgram::Unknown if BY_TYPE.contains(&prog_type) => unmodelled!(AttachProgram),
        AttachProgram::Unknown => false,
        AttachProgram::Known(_) => matches!(prog_type, ProgType::Tracing | ProgType::Ext),
    };
    if !attaches {
        reject!(EINVAL, "");
    }
    if prog_type
        .attach_type(program.expected_attach_type)
        .is_none()
    {
        reject!(EINVAL, "");
    }
    Ok(())
}
