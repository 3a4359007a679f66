//! What a program attaches to by a type in BTF (`check_attach_btf_id`).

use super::attach_target::AttachTarget;
use super::reject::{VerifyResult, reject};
use super::structure::SubprogramInfo;
use super::{attach_program, struct_ops};
use crate::program::Program;
use crate::spec::{ProgFlags, ProgType};

/// Resolves the attach target of a program with these functions, if it has one.
///
/// # Errors
/// The kernel's error, for a type that the program can't attach to.
pub(crate) fn resolve<'p>(
    program: &'p Program,
    subprograms: &[SubprogramInfo],
) -> VerifyResult<Option<AttachTarget<'p>>> {
    let sleepable = program.flags.contains(ProgFlags::SLEEPABLE);
    let prog_type = program.prog_type;
    if prog_type == ProgType::Syscall {
        if sleepable {
            return Ok(None);
        }
        reject!(EINVAL, "Syscall programs can only be sleepable");
    }
    // For a hook, whether it may sleep depends on the hook.
    let may_sleep = prog_type == ProgType::Lsm || prog_type.may_sleep(program.expected_attach_type);
    if sleepable && !may_sleep {
        reject!(
            EINVAL,
            "Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and struct_ops programs can be \
                 sleepable"
        );
    }
    match prog_type {
        ProgType::Tracing if program.attach_prog.is_some() => {
            attach_program::resolve(program, subprograms).map(Some)
        }
        ProgType::Tracing | ProgType::Lsm => AttachTarget::in_kernel(program, sleepable).map(Some),
        ProgType::StructOps => struct_ops::resolve(program, subprograms).map(Some),
        ProgType::Ext => attach_program::resolve(program, subprograms).map(Some),
        _ => Ok(None),
    }
}
