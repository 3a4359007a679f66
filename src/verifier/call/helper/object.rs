//! Typed objects as arguments (the type comparison in `check_reg_type`).

use super::arg_type::BORROWED;
use super::call_state::Call;
use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::call::{ArgSpec, TypeFlags};
use crate::spec::helpers::id;
use crate::util::{Errno, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};
use crate::verifier::typed::holds;

/// The flags with which a type is compared.
const COMPARED: TypeFlags = TypeFlags::PTR_TRUSTED
    .union(TypeFlags::MEM_RCU)
    .union(TypeFlags::PTR_MAYBE_NULL);

impl Verifier<'_> {
    /// Checks that the register's object has the type that the helper takes, or contains an
    /// object of this type at its offset.
    pub(super) fn check_object(
        &mut self,
        call: &mut Call,
        reg: Reg,
        arg: &ArgSpec,
        wanted: Option<&'static str>,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let Kind::BtfId { ty } = state.kind else {
            return Ok(());
        };
        let alone = [TypeFlags::PTR_TRUSTED, TypeFlags::MEM_RCU];
        let allocated = state.flags.contains(TypeFlags::MEM_ALLOC);
        if allocated {
            let plain = TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU;
            if !plain.contains(state.flags) && !BORROWED.contains(&state.flags) {
                reject!(
                    EFAULT,
                    "verifier bug: invalid PTR_TO_BTF_ID register for type match"
                );
            }
            return match call.kptr {
                Some(field) if reg == Reg::R2 => self.check_kptr_match(&field, reg),
                _ => Ok(()),
            };
        }
        if state.flags.contains(TypeFlags::MEM_PERCPU) {
            if ty.id == TypeId(0) {
                reject!(EACCES, "Helper has invalid btf_id in R{}", reg.number());
            }
            call.percpu = Some((ty, state.flags.contains(TypeFlags::MEM_RCU)));
            return Ok(());
        }
        let known = state.flags - TypeFlags::PTR_MAYBE_NULL;
        if !COMPARED.contains(state.flags) || !known.is_empty() && !alone.contains(&known) {
            reject!(
                EFAULT,
                "verifier bug: invalid PTR_TO_BTF_ID register for type match"
            );
        }
        let released = arg.releases();
        if state.maybe_null() && (!arg.nullable || released) {
            let number = reg.number();
            reject!(EACCES, "Possibly NULL pointer passed to helper arg{number}");
        }
        if let Some(field) = call.kptr {
            return self.check_kptr_match(&field, reg);
        }
        let Some(btf) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        let found = wanted.and_then(|wanted| btf.find(wanted, BtfKind::Struct));
        let Some(found) = found.map(|found| found.id()) else {
            unmodelled!(KernelBtf);
        };
        // A socket can be released through a pointer to its first member.
        let strict = released && call.id != id::sk_release;
        self.check_object_type(&state, reg, ty, found, strict)
    }

    /// Checks that an object has this type of the kernel, or contains an object of this type
    /// at the register's offset.
    pub(in crate::verifier) fn check_object_type(
        &self,
        state: &RegState,
        reg: Reg,
        ty: ObjectType,
        wanted: TypeId,
        strict: bool,
    ) -> VerifyResult {
        let Some(btf) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        let held = ty.btf(self.program).unwrap_or(btf);
        let found = if ty.own {
            Err(Reject::new(Errno::EINVAL, ""))
        } else {
            // The kernel passes the offset as 32 bits, also a negative one.
            holds(btf, ty.id, state.off.cast_unsigned(), wanted, strict, true)
        };
        found.map_err(|why| {
            let line = format_args!(
                "R{} is of type {} but {} is expected",
                reg.number(),
                held.ty(ty.id).name(),
                btf.ty(wanted).name()
            );
            why.and(line).with_errno(Errno::EACCES)
        })
    }
}
