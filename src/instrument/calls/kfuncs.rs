//! Signatures of kfuncs for recording, from their declarations.

use super::signature::{Class, Extent, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::spec::kfuncs::{Kfunc, Parameter, ParameterKind, by_name};

/// Names, or prefixes of names, of kfuncs that depend only on the program's own state: numbers,
/// critical sections.
const PLAIN: &[&str] = &[
    "bpf_iter_num_",
    "bpf_rcu_read_",
    "bpf_preempt_",
    "bpf_local_irq_",
];
/// Prefixes of kfuncs on memory behind the program's own dynptrs.
const OWN: &[&str] = &["bpf_dynptr_"];
/// Kfuncs that act on the world.
const EFFECT: &[&str] = &["bpf_send_signal_task"];

/// The signature of a kfunc.
pub(super) fn signature(name: &str) -> Result<Signature, Reason> {
    let refused = |why| Reason::Kfunc {
        name: name.to_owned(),
        why,
    };
    let kfunc = by_name(name).ok_or_else(|| refused("unknown kfunc"))?.row();
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    let parameters = kfunc.parameters();
    let class = if begins(PLAIN) {
        Class::Plain
    } else if begins(OWN) {
        Class::Own
    } else if begins(EFFECT) {
        Class::Effect
    } else {
        Class::World
    };
    if name == "bpf_throw" {
        return Err(refused("an exception ends the program from anywhere"));
    }
    for parameter in &parameters {
        if let Some(why) = obstacle(class, parameter) {
            return Err(refused(why));
        }
    }
    let mut roles = smallvec::SmallVec::new();
    for (number, parameter) in parameters.iter().enumerate() {
        roles.push(match role(&parameters, number, class) {
            Some(role) => role,
            None if parameter.nullable => Role::Silent,
            None => return Err(refused("the size of its memory argument is unknown")),
        });
    }
    Ok(Signature {
        class,
        roles,
        returns: returns(kfunc, class).ok_or_else(|| refused("it returns memory of its own"))?,
        callback: None,
    })
}

/// Why a parameter can't be recorded, if it can't.
fn obstacle(class: Class, parameter: &Parameter) -> Option<&'static str> {
    use ParameterKind as Kind;
    Some(match parameter.kind {
        Kind::Iterator if class != Class::Plain => "it iterates over kernel objects",
        Kind::Dynptr if class != Class::Own => "it fills memory behind a dynptr",
        Kind::ListHead
        | Kind::ListNode
        | Kind::RbRoot
        | Kind::RbNode
        | Kind::Allocated
        | Kind::Refcounted
        // The id of the type to allocate.
        | Kind::Constant => "objects that the program allocates are not recorded",
        Kind::Callback | Kind::Workqueue | Kind::TaskWork => {
            "the callback runs later, outside any firing"
        }
        Kind::ResSpinLock => "whether it gets the lock depends on the other CPUs",
        Kind::Map => "what it does to the map is not recorded",
        _ => return None,
    })
}

fn role(parameters: &[Parameter], number: usize, class: Class) -> Option<Role> {
    let kind = |number: usize| parameters.get(number).map(|parameter| parameter.kind);
    let sized = matches!(
        kind(number + 1),
        Some(ParameterKind::Size | ParameterKind::ConstantSize)
    );
    match kind(number)? {
        // The kfunc decides whether it uses the memory of a slice.
        ParameterKind::Memory if class == Class::Own => Some(Role::Silent),
        ParameterKind::Memory if sized => Some(Role::Filled(Extent::Next)),
        ParameterKind::Memory => None,
        ParameterKind::Scalar => Some(Role::Number),
        _ => Some(Role::Silent),
    }
}

fn returns(kfunc: &Kfunc, class: Class) -> Option<Returns> {
    match (kfunc.returns.trim_end(), class) {
        ("void", _) => Some(Returns::Nothing),
        (ty, Class::Plain) if ty.ends_with('*') => Some(Returns::Private),
        (ty, Class::Own) if ty.ends_with('*') => Some(Returns::Memory),
        // Structures belong to the kernel, numbers to the run.
        (ty, _) if ty.ends_with('*') => {
            (ty.starts_with("struct ") || ty.starts_with("void")).then_some(Returns::Kernel)
        }
        _ => Some(Returns::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_say_what_is_given_and_filled() {
        let next = signature("bpf_iter_num_next").unwrap();
        assert_eq!((next.class, next.returns), (Class::Plain, Returns::Private));
        let acquire = signature("bpf_task_acquire").unwrap();
        assert_eq!(
            (acquire.class, acquire.returns),
            (Class::World, Returns::Kernel)
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
