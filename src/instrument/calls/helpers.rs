//! Signatures of helpers for recording, from their prototypes.

use super::signature::{Callback, Passed, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::isa::Reg;
use crate::spec::call::{Access, ArgSpec, Effects, Precondition};
use crate::spec::helpers::{Caller, Helper, helper, id};
use crate::util::HelperId;

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
    let call = helper.call(prototype);
    let replay = call.replay.map_err(refused)?;
    let mut signature = Signature {
        replay,
        roles: call.arguments.iter().map(|arg| role(id, arg)).collect(),
        returns: Returns::of(&call, replay).map_err(refused)?,
        callback: callback(helper),
    };
    if helper.is_variadic() {
        // The arguments for the format.
        signature.roles.extend([Role::Number; 3]);
    }
    if signature.callback.is_none() && helper.effects.contains(Effects::CALLS_BACK) {
        return Err(refused("it calls a function of the program"));
    }
    Ok(Some(signature))
}

fn role(id: HelperId, arg: &ArgSpec) -> Role {
    match arg.region() {
        Some(region) if region.access == Access::Write => Role::Filled(region.extent),
        Some(region) => Role::Given(region.extent),
        None if arg.takes_anything() => Role::Number,
        None if arg.demands(Precondition::Map) => Role::Map,
        None if arg.releases() && id == id::ringbuf_submit => Role::Submitted,
        None => Role::Silent,
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
    use crate::instrument::calls::Extent;
    use crate::spec::helpers::helpers;
    use crate::spec::{CallReplay, ProgType};

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
        assert_eq!(
            (update.replay, &update.roles[..]),
            (CallReplay::Override, &roles[..])
        );
        let read = of(id::probe_read_kernel);
        assert_eq!(read.replay, CallReplay::Skip);
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

    /// Each helper of a tracing program has a signature or a reason.
    #[test]
    fn every_helper_has_an_answer() {
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
