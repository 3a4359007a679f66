//! Signatures of helpers for recording: from their prototypes, and rules for what these lack.

use super::signature::{Callback, Class, Extent, Passed, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::isa::Reg;
use crate::spec::helpers::{
    Arg, ArgKind, Caller, Detail, Effects, Helper, Prototype, RetKind, TypeFlags, helper, id,
};
use crate::util::HelperId;

/// A rule for what a helper's prototype does not say.
enum Rule {
    /// The class, regardless of the arguments.
    Is(Class),
    /// It can't be recorded.
    Refused(&'static str),
}

const STORAGE: Rule = Rule::Refused("the storage belongs to a kernel object, unknown to a replay");
const TIMER: Rule = Rule::Refused("the callback runs later, outside any firing");
const COMMAND: Rule = Rule::Refused("it is a system call");
const SEQUENCE: Rule = Rule::Refused("it is for iterator programs, which have no firings");

/// Without a rule a helper that gets a map is [`Class::Own`], any other [`Class::World`].
#[rustfmt::skip]
const RULES: &[(HelperId, Rule)] = &[
    // The results follow from the program's own state.
    (id::spin_lock, Rule::Is(Class::Plain)),
    (id::spin_unlock, Rule::Is(Class::Plain)),
    (id::r#loop, Rule::Is(Class::Plain)),
    (id::for_each_map_elem, Rule::Is(Class::Plain)),
    (id::ringbuf_submit, Rule::Is(Class::Plain)),
    (id::ringbuf_discard, Rule::Is(Class::Plain)),
    (id::ringbuf_submit_dynptr, Rule::Is(Class::Plain)),
    (id::ringbuf_discard_dynptr, Rule::Is(Class::Plain)),
    // No map, but the program's own memory goes in.
    (id::trace_printk, Rule::Is(Class::Own)),
    (id::trace_vprintk, Rule::Is(Class::Own)),
    (id::strtol, Rule::Is(Class::Own)),
    (id::strtoul, Rule::Is(Class::Own)),
    (id::strncmp, Rule::Is(Class::Own)),
    (id::csum_diff, Rule::Is(Class::Own)),
    (id::dynptr_from_mem, Rule::Is(Class::Own)),
    (id::dynptr_read, Rule::Is(Class::Own)),
    (id::dynptr_write, Rule::Is(Class::Own)),
    (id::dynptr_data, Rule::Is(Class::Own)),
    // A map, but with contents that come from the world.
    (id::perf_event_read, Rule::Is(Class::World)),
    (id::perf_event_read_value, Rule::Is(Class::World)),
    (id::get_stackid, Rule::Is(Class::World)),
    (id::current_task_under_cgroup, Rule::Is(Class::World)),
    (id::skb_under_cgroup, Rule::Is(Class::World)),
    (id::ringbuf_query, Rule::Is(Class::World)),
    // The helper acts on the world.
    (id::send_signal, Rule::Is(Class::Effect)),
    (id::send_signal_thread, Rule::Is(Class::Effect)),
    (id::probe_write_user, Rule::Is(Class::Effect)),
    (id::override_return, Rule::Is(Class::Effect)),
    (id::set_retval, Rule::Is(Class::Effect)),
    // A replay can't repeat these.
    (id::timer_init, TIMER),
    (id::timer_set_callback, TIMER),
    (id::timer_start, TIMER),
    (id::timer_cancel, TIMER),
    (id::sk_storage_get, STORAGE),
    (id::sk_storage_delete, STORAGE),
    (id::inode_storage_get, STORAGE),
    (id::inode_storage_delete, STORAGE),
    (id::task_storage_get, STORAGE),
    (id::task_storage_delete, STORAGE),
    (id::cgrp_storage_get, STORAGE),
    (id::cgrp_storage_delete, STORAGE),
    (id::get_local_storage, STORAGE),
    (id::kptr_xchg, Rule::Refused("a map holds the kernel object, unknown to a replay")),
    (id::find_vma, Rule::Refused("its callback gets a kernel object, unknown to a replay")),
    (id::user_ringbuf_drain, Rule::Refused("what user space wrote is not recorded")),
    (id::sys_bpf, COMMAND),
    (id::sys_close, COMMAND),
    (id::seq_printf, SEQUENCE),
    (id::seq_write, SEQUENCE),
    (id::seq_printf_btf, SEQUENCE),
];

/// The signature of a helper; `None` if the caller may not call it.
pub(super) fn signature(id: HelperId, caller: &Caller<'_>) -> Result<Option<Signature>, Reason> {
    let refused = |why| Reason::Helper {
        name: helper(id).map_or_else(|| id.to_string(), |helper| helper.name.to_owned()),
        why,
    };
    let found = helper(id).and_then(|helper| Some((helper, helper.prototype(caller)?)));
    let Some((helper, prototype)) = found else {
        return Ok(None);
    };
    let rule = RULES.iter().find(|(ruled, _)| *ruled == id);
    let class = match rule {
        Some((_, Rule::Is(class))) => *class,
        Some((_, Rule::Refused(why))) => return Err(refused(why)),
        None if prototype
            .args
            .iter()
            .any(|arg| arg.kind == ArgKind::ConstMapPtr) =>
        {
            Class::Own
        }
        None => Class::World,
    };
    let mut signature = Signature {
        class,
        roles: prototype.args.iter().map(|arg| role(id, arg)).collect(),
        returns: returns(id, class, prototype),
        callback: callback(helper),
    };
    if id == id::trace_printk {
        // The arguments for the format.
        signature.roles.extend([Role::Number; 3]);
    }
    if signature.callback.is_none() && helper.effects.contains(Effects::CALLS_BACK) {
        return Err(refused("it calls a function of the program"));
    }
    Ok(Some(signature))
}

fn role(id: HelperId, arg: &Arg) -> Role {
    let extent = match (arg.kind, arg.detail) {
        (ArgKind::PtrToMapKey, _) => Extent::Key,
        (ArgKind::PtrToMapValue, _) => Extent::Value,
        (_, Detail::Size(bytes)) => Extent::Fixed(bytes),
        _ => Extent::Next,
    };
    match arg.kind {
        ArgKind::ConstMapPtr => Role::Map,
        ArgKind::PtrToMapKey | ArgKind::PtrToMapValue | ArgKind::PtrToMem => {
            if arg.flags.contains(TypeFlags::MEM_WRITE) {
                Role::Filled(extent)
            } else {
                Role::Given(extent)
            }
        }
        ArgKind::Anything => Role::Number,
        ArgKind::PtrToRingbufMem if id == id::ringbuf_submit => Role::Submitted,
        _ => Role::Silent,
    }
}

fn returns(id: HelperId, class: Class, prototype: &Prototype) -> Returns {
    match prototype.ret.kind {
        // The prototype has a number, but callers get none.
        _ if class == Class::Plain && matches!(id, id::spin_lock | id::spin_unlock) => {
            Returns::Nothing
        }
        RetKind::Integer => Returns::Number,
        RetKind::Void => Returns::Nothing,
        RetKind::PtrToMapValue => Returns::Value,
        RetKind::PtrToMem if id == id::ringbuf_reserve => Returns::Record,
        RetKind::PtrToMem if class == Class::Own => Returns::Memory,
        _ => Returns::Kernel,
    }
}

fn callback(helper: &Helper) -> Option<Callback> {
    let passes: &[Passed] = match helper.id {
        id::r#loop => &[Passed::Number, Passed::Argument(Reg::R3)],
        id::for_each_map_elem => &[
            Passed::Map,
            Passed::Key,
            Passed::Value,
            Passed::Argument(Reg::R3),
        ],
        _ => return None,
    };
    Some(Callback {
        function: Reg::R2,
        passes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgType;
    use crate::spec::helpers::helpers;

    fn of(id: HelperId) -> Signature {
        let signature = signature(id, &Caller::of(ProgType::Tracepoint));
        signature.unwrap().unwrap()
    }

    #[test]
    fn prototypes_say_what_is_given_and_filled() {
        let update = of(id::map_update_elem);
        let roles = [
            Role::Map,
            Role::Given(Extent::Key),
            Role::Given(Extent::Value),
            Role::Number,
        ];
        assert_eq!((update.class, &update.roles[..]), (Class::Own, &roles[..]));
        let read = of(id::probe_read_kernel);
        assert_eq!(read.class, Class::World);
        assert_eq!(read.roles[0], Role::Filled(Extent::Next));
        assert_eq!(of(id::map_lookup_elem).returns, Returns::Value);
        assert_eq!(of(id::ringbuf_reserve).returns, Returns::Record);
        assert_eq!(of(id::get_current_task_btf).returns, Returns::Kernel);
        assert_eq!(of(id::trace_printk).roles.len(), 5);
    }

    #[test]
    fn what_cannot_be_done_again_is_refused_with_a_reason() {
        let error = |id| {
            let error = signature(id, &Caller::of(ProgType::Tracepoint)).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            error(id::timer_init),
            "bpf_timer_init: the callback runs later, outside any firing"
        );
        let poisoned = signature(HelperId(195_896_080), &Caller::of(ProgType::Tracepoint));
        assert_eq!(poisoned, Ok(None));
    }

    /// No helper has two rules, and each helper of a tracing program has a signature or a
    /// reason.
    #[test]
    fn every_helper_has_an_answer() {
        for (number, (id, _)) in RULES.iter().enumerate() {
            assert!(RULES[..number].iter().all(|(other, _)| other != id), "{id}");
        }
        let caller = Caller::of(ProgType::RawTracepoint);
        let (mut known, mut refused, mut others) = (0, 0, 0);
        for helper in helpers() {
            match signature(helper.id, &caller) {
                Ok(Some(signature)) => {
                    known += 1;
                    assert!(signature.roles.len() <= 5, "{}", helper.name);
                }
                Ok(None) => others += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(known > 60 && refused > 10, "{known} {refused} {others}");
    }
}
