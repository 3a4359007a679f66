//! Whether a program of this type can be attached to what it names, as far as that
//! shows when it is loaded (`bpf_prog_load_check_attach`, `kernel/bpf/syscall.c`;
//! `check_attach_btf_id`, `kernel/bpf/verifier.c`).

use crate::btf::Kind;
use crate::program::Program;
use crate::spec::{AttachType, ProgFlags, ProgType};
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
    let sleepable = program.flags.contains(ProgFlags::SLEEPABLE);
    let attach = program.expected_attach_type;
    match program.prog_type {
        ProgType::Syscall if !sleepable => {
            reject!(EINVAL, "Syscall programs can only be sleepable")
        }
        ProgType::Syscall => Ok(()),
        prog_type if sleepable && !can_be_sleepable(prog_type, attach) => reject!(
            EINVAL,
            "Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and struct_ops programs can be sleepable"
        ),
        ProgType::StructOps if !super::is_gpl_compatible(&program.license) => reject!(
            EINVAL,
            "struct ops programs must have a GPL compatible license"
        ),
        ProgType::Tracing | ProgType::Lsm => check_target(program),
        _ => Ok(()),
    }
}

fn can_be_sleepable(prog_type: ProgType, attach: Option<AttachType>) -> bool {
    // Whether a cgroup's hook may sleep is asked when its target is known.
    prog_type == ProgType::Lsm || prog_type.may_sleep(attach)
}

/// The function or tracepoint of the kernel (`bpf_check_attach_target`).
fn check_target(program: &Program) -> Checked {
    let Some(id) = program.attach_btf_id else {
        reject!(EINVAL, "Tracing programs must provide btf_id");
    };
    let Some(btf) = &program.kernel_btf else {
        return Ok(());
    };
    let Some(target) = btf.get(id) else {
        reject!(EINVAL, "attach_btf_id {id} is invalid");
    };
    let name = target.name();
    match program.expected_attach_type {
        Some(AttachType::TraceRawTp) => {
            if target.kind() != Kind::Typedef {
                reject!(EINVAL, "attach_btf_id {id} is not a typedef");
            }
            if !name.starts_with("btf_trace_") {
                reject!(
                    EINVAL,
                    "attach_btf_id {id} points to wrong type name {name}"
                );
            }
        }
        _ if target.kind() != Kind::Func => {
            reject!(EINVAL, "attach_btf_id {id} is not a function")
        }
        _ => {}
    }
    if program.prog_type == ProgType::Lsm && !super::is_gpl_compatible(&program.license) {
        reject!(EINVAL, "LSM programs must have a GPL compatible license");
    }
    Ok(())
}
