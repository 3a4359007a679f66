//! Dynptrs as arguments of helpers.

use super::call_state::Call;
use crate::isa::Reg;
use crate::spec::call::{DynptrUse, Precondition};
use crate::spec::helpers::{TypeFlags, id};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{DynptrKind, Kind};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack_object::dynptr::{Dynptr, DynptrArgument};

impl Call {
    /// Whether the argument that the call releases is a dynptr.
    pub(super) fn releases_dynptr(&self) -> bool {
        let released = Precondition::Dynptr(DynptrUse::Releases);
        let mut arguments = self.prototype.arguments.iter();
        arguments.any(|argument| argument.demands(released))
    }

    /// The argument that is a dynptr (`get_dynptr_arg_reg`).
    fn dynptr_argument(&self) -> Option<Reg> {
        let is_dynptr = |one: &Precondition| matches!(one, Precondition::Dynptr(_));
        let arguments = self.prototype.arguments.iter();
        let mut arguments = arguments.zip(Reg::ARGUMENTS);
        let found = arguments.find(|(argument, _)| argument.preconditions.iter().any(is_dynptr));
        found.map(|(_, reg)| reg)
    }

    /// The flags of an argument in the kernel's notation.
    fn flags_of(&self, reg: Reg) -> TypeFlags {
        let at = Reg::ARGUMENTS.iter().position(|argument| *argument == reg);
        let arg = at.and_then(|at| self.prototype.args.get(at));
        arg.map_or(TypeFlags::empty(), |arg| arg.flags)
    }
}

impl Verifier<'_> {
    /// Checks a dynptr argument.
    pub(super) fn check_dynptr_argument(
        &mut self,
        call: &mut Call,
        reg: Reg,
        step: DynptrUse,
    ) -> VerifyResult {
        let flags = call.flags_of(reg);
        if step == DynptrUse::Releases {
            self.check_dynptr_release(reg)?;
            call.released = Some(reg);
        }
        let argument = match (step, kind_of(flags)) {
            (DynptrUse::Initialises, Some(kind)) => DynptrArgument::New {
                kind,
                parent_ref: 0,
            },
            (DynptrUse::Initialises, None) => reject!(EINVAL, ""),
            (_, kind) => DynptrArgument::Use {
                kind,
                constant: flags.contains(TypeFlags::MEM_RDONLY),
            },
        };
        self.process_dynptr_argument(reg, argument)
    }

    /// Checks the rules of single helpers, and records what the result depends on.
    pub(super) fn check_dynptr_rules(&mut self, call: &mut Call) -> VerifyResult {
        match call.id {
            id::dynptr_from_mem => {
                let data = self.reg(Reg::R1);
                if !matches!(data.kind, Kind::MapValue { .. }) || !data.flags.is_empty() {
                    reject!(
                        EACCES,
                        "Unsupported reg type {} for bpf_dynptr_from_mem data",
                        data.reg_type()
                    );
                }
            }
            id::dynptr_data => {
                let dynptr = self.argument_dynptr(call)?;
                (call.dynptr_id, call.ref_id) = (dynptr.id, dynptr.ref_id);
            }
            id::dynptr_write => {
                // Slices of the packet become invalid like packet pointers.
                let kind = self.argument_dynptr(call)?.kind;
                call.changes_packet |= matches!(kind, DynptrKind::Skb | DynptrKind::SkbMeta);
            }
            _ => {}
        }
        Ok(())
    }

    fn argument_dynptr(&self, call: &Call) -> VerifyResult<Dynptr> {
        let found = match call.dynptr_argument() {
            Some(reg) => self.dynptr_of(self.reg(reg))?,
            None => None,
        };
        match found {
            Some(found) => Ok(found),
            None => reject!(EFAULT, "verifier bug: failed to obtain dynptr id"),
        }
    }
}

/// The kind of dynptr that the flags name (`arg_to_dynptr_type`).
fn kind_of(flags: TypeFlags) -> Option<DynptrKind> {
    let kinds = [
        (TypeFlags::DYNPTR_TYPE_LOCAL, DynptrKind::Local),
        (TypeFlags::DYNPTR_TYPE_RINGBUF, DynptrKind::Ringbuf),
        (TypeFlags::DYNPTR_TYPE_SKB, DynptrKind::Skb),
        (TypeFlags::DYNPTR_TYPE_XDP, DynptrKind::Xdp),
        (TypeFlags::DYNPTR_TYPE_SKB_META, DynptrKind::SkbMeta),
    ];
    let mut kinds = kinds.into_iter();
    kinds
        .find(|(flag, _)| flags.contains(*flag))
        .map(|(_, kind)| kind)
}
