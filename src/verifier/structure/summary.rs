//! What can be known of a call from the callee's prototype alone
//! (`get_call_summary`, `kernel/bpf/verifier.c`).

use crate::spec::helpers::{self, Attributes, Caller, Prototype, RetKind, id};
use crate::util::HelperId;

/// Helpers that a x86-64 kernel calls without a call, so that they can keep registers
/// (`verifier_inlines_helper_call`).
const INLINED: &[HelperId] = &[id::get_smp_processor_id];

/// A helper's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) struct Summary {
    /// How many arguments are read.
    pub arguments: u8,
    /// Whether `r0` is left as it was.
    pub is_void: bool,
    /// Whether registers that it has no use for are kept.
    pub fastcall: bool,
}

/// How `caller` calls this helper; none if it can't.
pub(super) fn prototype(helper: HelperId, caller: &Caller<'_>) -> Option<&'static Prototype> {
    helpers::helper(helper)?.prototype(caller)
}

/// What is known of a call of this helper; nothing if there is no such helper for
/// `caller`.
pub(in crate::verifier) fn of(helper: HelperId, caller: &Caller<'_>) -> Option<Summary> {
    let prototype = prototype(helper, caller)?;
    Some(Summary {
        arguments: u8::try_from(prototype.args.len()).unwrap_or(u8::MAX),
        is_void: prototype.ret.kind == RetKind::Void,
        fastcall: prototype.attributes.contains(Attributes::FASTCALL) && INLINED.contains(&helper),
    })
}
