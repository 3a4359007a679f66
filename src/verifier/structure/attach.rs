//! Whether a program of this type can be attached to what it names, as far as that
//! shows when it is loaded (`bpf_prog_load_check_attach`, `kernel/bpf/syscall.c`;
//! `check_attach_btf_id`, `kernel/bpf/verifier.c`).

use crate::program::Program;
use crate::verifier::attach_target::AttachTarget;
use crate::verifier::reject::{Checked, reject};

/// What the system call looks at before there is a log.
pub(super) fn check_load(program: &Program) -> Checked {
    let attach = program.expected_attach_type;
    if program.prog_type.attach_type(attach).is_none() {
        reject!(EINVAL, "");
    }
    Ok(())
}

/// What the verifier looks at.
pub(super) fn check(program: &Program) -> Checked {
    AttachTarget::resolve(program).map(|_| ())
}
