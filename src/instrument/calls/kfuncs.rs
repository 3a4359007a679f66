//! Signatures of kfuncs for recording, from their declarations.

use super::signature::{Extent, Returns, Role, Signature};
use crate::btf::FieldKind;
use crate::instrument::error::Reason;
use crate::spec::call::{ArgSpec, Precondition, RegTypes};
use crate::spec::kfuncs::by_name;
use crate::spec::{CALLS_BACK_LATER, CallReplay};

/// The signature of a kfunc.
pub(super) fn signature(name: &str) -> Result<Signature, Reason> {
    let refused = |why| Reason::Kfunc {
        name: name.to_owned(),
        why,
    };
    let kfunc = by_name(name).ok_or_else(|| refused("unknown kfunc"))?.row();
    let call = kfunc.call();
    let replay = call.replay.map_err(refused)?;
    let obstacle = |argument| obstacle(replay, argument);
    if let Some(why) = call.arguments.iter().find_map(obstacle) {
        return Err(refused(why));
    }
    let roles: Option<_> = call.arguments.iter().map(|arg| role(replay, arg)).collect();
    Ok(Signature {
        replay,
        roles: roles.ok_or_else(|| refused("the size of its memory argument is unknown"))?,
        returns: Returns::of(&call, replay).map_err(refused)?,
        callback: None,
    })
}

/// Why an argument can't be recorded, if it can't.
fn obstacle(replay: CallReplay, argument: &ArgSpec) -> Option<&'static str> {
    const ALLOCATES: &str = "objects that the program allocates are not recorded";
    let mut preconditions = argument.preconditions.iter();
    preconditions.find_map(|precondition| {
        Some(match precondition {
            Precondition::Iterator(_) if replay != CallReplay::Repeat => {
                "it iterates over kernel objects"
            }
            Precondition::Dynptr(_) if replay != CallReplay::Override => {
                "it fills memory behind a dynptr"
            }
            Precondition::Is(RegTypes::ALLOCATED) => ALLOCATES,
            Precondition::Field(FieldKind::ListHead | FieldKind::RbRoot) => ALLOCATES,
            // The id of the type to allocate.
            Precondition::Constant if !argument.is_size() => ALLOCATES,
            Precondition::Callback
            | Precondition::Field(FieldKind::Workqueue | FieldKind::TaskWork) => CALLS_BACK_LATER,
            Precondition::Field(FieldKind::ResSpinLock) => {
                "whether it gets the lock depends on the other CPUs"
            }
            Precondition::Map => "what it does to the map is not recorded",
            _ => return None,
        })
    })
}

/// The role of an argument; `None`: unknown.
fn role(replay: CallReplay, argument: &ArgSpec) -> Option<Role> {
    match argument.region().map(|region| region.extent) {
        // The kfunc decides whether it uses the memory of a slice.
        Some(_) if replay == CallReplay::Override => Some(Role::Silent),
        Some(Extent::Next) => Some(Role::Filled(Extent::Next)),
        Some(_) => argument.nullable.then_some(Role::Silent),
        None if argument.preconditions == [Precondition::Is(RegTypes::SCALAR)] => {
            Some(Role::Number)
        }
        None => Some(Role::Silent),
    }
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
