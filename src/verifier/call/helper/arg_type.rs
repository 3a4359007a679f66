//! Types and offsets of the registers that are passed (`check_reg_type`,
//! `check_func_arg_reg_off`).

use super::call_state::{Call, Named};
use crate::isa::Reg;
use crate::spec::call::{Precondition, RegTypes, TypeFlags};
use crate::spec::helpers::id;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The flags of non-owning references to elements of lists and trees.
pub(super) const BORROWED: [TypeFlags; 2] = {
    let flags = TypeFlags::MEM_ALLOC.union(TypeFlags::NON_OWN_REF);
    [flags, flags.union(TypeFlags::MEM_RCU)]
};

/// Checks that the register has one of these types.
pub(in crate::verifier) fn check_type(state: &RegState, reg: Reg, types: RegTypes) -> VerifyResult {
    let held = state.reg_type();
    if types.contains(held) {
        return Ok(());
    }
    let line = format!("R{} type={held} expected={types}", reg.number());
    Err(Reject::new(Errno::EACCES, line).violating(Precondition::Is(types)))
}

impl Verifier<'_> {
    /// Checks that the register's type is allowed for the argument.
    pub(super) fn check_argument_type(
        &self,
        call: &Call,
        reg: Reg,
        types: RegTypes,
    ) -> VerifyResult {
        let state = self.reg(reg);
        let allocated = state.flags.contains(TypeFlags::MEM_ALLOC);
        if call.id == id::kptr_xchg && reg == Reg::R2 && allocated {
            let types = types.ignoring(TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU);
            return check_type(state, reg, types);
        }
        check_type(state, reg, types)
    }

    /// Rejects a kernel object as memory that the helper may write.
    pub(super) fn check_no_object(&self, call: &Call, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        if !matches!(state.kind, Kind::BtfId { .. }) {
            return Ok(());
        }
        let name = Named(call.id).to_string();
        let name = name.split('#').next().unwrap_or_default();
        reject!(
            EACCES,
            "{name}() may write into memory pointed by R{} type={}",
            reg.number(),
            state.reg_type()
        );
    }

    /// Checks that a pointer to release has no offset.
    pub(in crate::verifier) fn check_no_offset(&mut self, reg: Reg) -> VerifyResult {
        let state = *self.reg(reg);
        if state.off != 0 {
            reject!(
                EINVAL,
                "R{} must have zero offset when passed to release func or trusted arg to kfunc",
                reg.number()
            );
        }
        self.check_pointer_offset(&state, reg, false)
    }

    /// Checks that the register's type allows its offset: some pointers must be passed
    /// unmodified.
    pub(in crate::verifier) fn check_offset_of_type(
        &mut self,
        state: &RegState,
        reg: Reg,
    ) -> VerifyResult {
        let at_most = |flags: TypeFlags| flags.contains(state.flags);
        let movable = match state.kind {
            Kind::Stack { .. }
            | Kind::Packet { .. }
            | Kind::PacketMeta { .. }
            | Kind::MapKey { .. }
            | Kind::MapValue { .. }
            | Kind::Arena
            | Kind::Scalar => state.flags.is_empty(),
            Kind::Mem { .. } => at_most(TypeFlags::MEM_RDONLY) || at_most(TypeFlags::MEM_RINGBUF),
            Kind::Buf => at_most(TypeFlags::MEM_RDONLY),
            _ => false,
        };
        if movable {
            return Ok(());
        }
        let fixed = matches!(state.kind, Kind::BtfId { .. })
            && (at_most(TypeFlags::PTR_TRUSTED)
                || at_most(TypeFlags::MEM_RCU)
                || at_most(TypeFlags::MEM_ALLOC)
                || BORROWED.contains(&state.flags));
        self.check_pointer_offset(state, reg, fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_type_says_what_is_expected() {
        let number = RegState::constant(12);
        assert_eq!(check_type(&number, Reg::R2, RegTypes::SCALAR), Ok(()));
        let why = check_type(&number, Reg::R2, RegTypes::HOLDS_FIELDS).unwrap_err();
        assert_eq!(why.message(), "R2 type=scalar expected=map_value, ptr_");
        assert_eq!(
            why.violated().map(|demand| demand.to_string()).as_deref(),
            Some("one of: map_value, ptr_")
        );
    }
}
