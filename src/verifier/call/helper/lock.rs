//! Locks and timers in map values (`process_spin_lock`, `check_map_field_pointer`).

use super::call_state::Call;
use crate::btf::FieldKind;
use crate::isa::Reg;
use crate::spec::helpers::id;
use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, MapRef, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};
use crate::verifier::state::{Reference, ReferenceKind};

impl Verifier<'_> {
    /// The lock that is held; there is at most one.
    pub(crate) fn held_lock(&self) -> Option<&Reference> {
        let is_lock = |held: &&Reference| matches!(held.kind, ReferenceKind::SpinLock(_));
        self.state.refs.iter().find(is_lock)
    }

    /// Rejects calls while a lock is held, except for unlocking.
    pub(super) fn check_call_under_lock(&self, id: HelperId) -> VerifyResult {
        if id != id::spin_unlock && self.held_lock().is_some() {
            reject!(
                EINVAL,
                "function calls are not allowed while holding a lock"
            );
        }
        Ok(())
    }

    /// Acquires or releases the lock that an argument points to.
    pub(super) fn check_lock(&mut self, call: &Call, reg: Reg) -> VerifyResult {
        let state = *self.reg(reg);
        let Kind::MapValue { map, .. } = state.kind else {
            unmodelled!(TypedPointer);
        };
        self.check_field(reg, &state, map, FieldKind::SpinLock)?;
        let held = self.held_lock().copied();
        if call.id == id::spin_lock {
            if held.is_some() {
                reject!(EINVAL, "Locking two bpf_spin_locks are not allowed");
            }
            self.state.refs.push(Reference {
                id: state.id,
                pc: self.pc(),
                kind: ReferenceKind::SpinLock(map),
            });
            return Ok(());
        }
        let Some(held) = held else {
            reject!(EINVAL, "bpf_spin_unlock without taking a lock");
        };
        if held.id != state.id || held.kind != ReferenceKind::SpinLock(map) {
            reject!(EINVAL, "bpf_spin_unlock of different lock");
        }
        self.state
            .refs
            .retain(|other| !matches!(other.kind, ReferenceKind::SpinLock(_)));
        Ok(())
    }

    /// Checks that the argument points to a timer, and records its map.
    pub(super) fn check_timer(&mut self, call: &mut Call, reg: Reg) -> VerifyResult {
        let state = *self.reg(reg);
        let Kind::MapValue { map, uid } = state.kind else {
            return Ok(());
        };
        self.check_field(reg, &state, map, FieldKind::Timer)?;
        call.map = Some((map, uid));
        Ok(())
    }

    /// Checks that the register points to the start of this field of a map value.
    pub(in crate::verifier) fn check_field(
        &self,
        reg: Reg,
        state: &RegState,
        map: MapRef,
        kind: FieldKind,
    ) -> VerifyResult {
        let name = kind.name();
        let Some(var) = state.var.value() else {
            reject!(
                EINVAL,
                "R{} doesn't have constant offset. {name} has to be at the constant offset",
                reg.number()
            );
        };
        let map_name = self.maps.name(map);
        if !self.maps.is_typed(map) {
            reject!(
                EINVAL,
                "map '{map_name}' has to have BTF in order to use {name}"
            );
        }
        let fields = self.maps.fields(map);
        let Some(field) = fields.iter().find(|field| field.kind == kind) else {
            reject!(EINVAL, "map '{map_name}' has no valid {name}");
        };
        let off = var.cast_signed().wrapping_add(state.off.into());
        if off != i64::from(field.off) {
            reject!(
                EINVAL,
                "off {off} doesn't point to 'struct {name}' that is at {}",
                field.off
            );
        }
        Ok(())
    }
}
