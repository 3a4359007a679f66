//! The attributes of a load, which are judged before the verifier sees the program
//! (`bpf_prog_load`, `bpf_prog_load_check_attach`, `kernel/bpf/syscall.c`): a mistake is an
//! error number without a line.

use crate::program::Program;
use crate::spec::limits::{MAX_BTF_TYPE, MAX_INSNS};
use crate::spec::{ProgFlags, ProgType};
use crate::verifier::reject::{Checked, reject, unmodelled};

/// Program types that may say by a type in BTF what they attach to.
const BY_TYPE: &[ProgType] = &[
    ProgType::Tracing,
    ProgType::Lsm,
    ProgType::StructOps,
    ProgType::Ext,
];

/// The attributes, in the kernel's order.
pub(super) fn check(program: &Program) -> Checked {
    let prog_type = program.prog_type;
    let unknown = program.flags.bits() & !ProgFlags::all().bits() != 0;
    // A program carries no token: the descriptor is 0, which is none.
    if unknown || program.flags.contains(ProgFlags::TOKEN_FD) {
        reject!(EINVAL, "");
    }
    if program.insns.is_empty() || program.insns.len() > MAX_INSNS {
        reject!(E2BIG, "");
    }
    if let Some(id) = program.attach_btf_id
        && (id.0 > MAX_BTF_TYPE || !BY_TYPE.contains(&prog_type))
    {
        reject!(EINVAL, "");
    }
    if program.attach_prog {
        if !BY_TYPE.contains(&prog_type) {
            reject!(EINVAL, "");
        }
        unmodelled!(AttachProgram);
    }
    if prog_type
        .attach_type(program.expected_attach_type)
        .is_none()
    {
        reject!(EINVAL, "");
    }
    Ok(())
}
