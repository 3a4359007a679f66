//! Signatures of kfuncs for recording, from their declarations.

use super::signature::{Extent, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::spec::kfuncs::{KfuncResult, Parameter, ParameterKind, by_name};
use crate::spec::{CALLS_BACK_LATER, CallReplay};

/// The signature of a kfunc.
pub(super) fn signature(name: &str) -> Result<Signature, Reason> {
    let refused = |why| Reason::Kfunc {
        name: name.to_owned(),
        why,
    };
    let kfunc = by_name(name).ok_or_else(|| refused("unknown kfunc"))?.row();
    let replay = kfunc.replay.map_err(refused)?;
    let parameters = kfunc.parameters;
    for parameter in parameters {
        if let Some(why) = obstacle(replay, parameter) {
            return Err(refused(why));
        }
    }
    let mut roles = smallvec::SmallVec::new();
    for (number, parameter) in parameters.iter().enumerate() {
        roles.push(match role(parameters, number, replay) {
            Some(role) => role,
            None if parameter.nullable => Role::Silent,
            None => return Err(refused("the size of its memory argument is unknown")),
        });
    }
    Ok(Signature {
        replay,
        roles,
        returns: returns(kfunc.result, replay)
            .ok_or_else(|| refused("it returns memory of its own"))?,
        callback: None,
    })
}

/// Why a parameter can't be recorded, if it can't.
fn obstacle(replay: CallReplay, parameter: &Parameter) -> Option<&'static str> {
    use ParameterKind as Kind;
    Some(match parameter.kind {
        Kind::Iterator if replay != CallReplay::Repeat => "it iterates over kernel objects",
        Kind::Dynptr if replay != CallReplay::Override => "it fills memory behind a dynptr",
        Kind::ListHead
        | Kind::ListNode
        | Kind::RbRoot
        | Kind::RbNode
        | Kind::Allocated
        | Kind::Refcounted
        // The id of the type to allocate.
        | Kind::Constant => "objects that the program allocates are not recorded",
        Kind::Callback | Kind::Workqueue | Kind::TaskWork => CALLS_BACK_LATER,
        Kind::ResSpinLock => "whether it gets the lock depends on the other CPUs",
        Kind::Map => "what it does to the map is not recorded",
        _ => return None,
    })
}

fn role(parameters: &[Parameter], number: usize, replay: CallReplay) -> Option<Role> {
    let kind = |number: usize| parameters.get(number).map(|parameter| parameter.kind);
    let sized = matches!(
        kind(number + 1),
        Some(ParameterKind::Size | ParameterKind::ConstantSize)
    );
    match kind(number)? {
        // The kfunc decides whether it uses the memory of a slice.
        ParameterKind::Memory if replay == CallReplay::Override => Some(Role::Silent),
        ParameterKind::Memory if sized => Some(Role::Filled(Extent::Next)),
        ParameterKind::Memory => None,
        ParameterKind::Scalar => Some(Role::Number),
        _ => Some(Role::Silent),
    }
}

fn returns(result: KfuncResult, replay: CallReplay) -> Option<Returns> {
    Some(match (result, replay) {
        (KfuncResult::Void, _) => Returns::Nothing,
        (KfuncResult::Signed | KfuncResult::Unsigned, _) => Returns::Number,
        (KfuncResult::Pointer(_), CallReplay::Repeat) => Returns::Private,
        (KfuncResult::Pointer(_), CallReplay::Override) => Returns::Memory,
        // Structures belong to the kernel, numbers to the run.
        (KfuncResult::Pointer(base), _) if base.starts_with("struct ") || base == "void" => {
            Returns::Kernel
        }
        (KfuncResult::Pointer(_), _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_say_what_is_given_and_filled() {
        let next = signature("bpf_iter_num_next").unwrap();
        assert_eq!(
            (next.replay, next.returns),
            (CallReplay::Repeat, Returns::Private)
        );
        let acquire = signature("bpf_task_acquire").unwrap();
        assert_eq!(
            (acquire.replay, acquire.returns),
            (CallReplay::Skip, Returns::Kernel)
        );
        let copy = signature("bpf_copy_from_user_str").unwrap();
        assert_eq!(copy.roles[0], Role::Filled(Extent::Next));
        assert_eq!(
            signature("bpf_rcu_read_lock").unwrap().returns,
            Returns::Nothing
        );
    }

    #[test]
    fn what_cannot_be_done_again_is_refused() {
        let names = [
            "bpf_obj_new_impl",
            "bpf_obj_drop_impl",
            "bpf_throw",
            "bpf_iter_task_new",
            "bpf_wq_start",
            "bpf_probe_read_user_dynptr",
            "bpf_nobody",
        ];
        for name in names {
            let refused = signature(name);
            assert!(
                matches!(refused, Err(Reason::Kfunc { .. })),
                "{name}: {refused:?}"
            );
        }
    }
}
