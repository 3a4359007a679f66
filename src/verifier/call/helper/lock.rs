//! Locks and timers in map values and allocated objects (`process_spin_lock`,
//! `check_map_field_pointer`).

use super::call_state::Call;
use crate::btf::{FieldKind, SpecialField};
use crate::isa::Reg;
use crate::spec::call::TypeFlags;
use crate::spec::helpers::id;
use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::references::{Lock, LockKind, LockOwner, Reference, ReferenceKind};
use crate::verifier::reg::{Kind, MapRef, RegState};
use crate::verifier::reject::{VerifyResult, reject};

impl LockKind {
    /// The field that is such a lock.
    const fn field(self) -> FieldKind {
        match self {
            Self::Spin => FieldKind::SpinLock,
            Self::Resilient | Self::ResilientIrq => FieldKind::ResSpinLock,
        }
    }
}

impl Verifier<'_> {
    /// The lock that was taken last of those that are held.
    pub(crate) fn held_lock(&self) -> Option<&Reference> {
        self.state.refs.newest_lock()
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

    /// Acquires or releases the lock that an argument of a helper points to.
    pub(super) fn check_lock(&mut self, call: &Call, reg: Reg) -> VerifyResult {
        if self.in_tree_callback() {
            reject!(EACCES, "can't spin_{{lock,unlock}} in rbtree cb");
        }
        self.process_lock(reg, LockKind::Spin, call.id == id::spin_lock)
    }

    /// Acquires or releases the lock that a register points to. Locks are released in the
    /// reverse order (`process_spin_lock`).
    pub(in crate::verifier) fn process_lock(
        &mut self,
        reg: Reg,
        kind: LockKind,
        takes: bool,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let owner = match state.kind {
            Kind::MapValue { map, .. } => {
                self.check_field(reg, &state, map, kind.field())?;
                LockOwner::Map(map)
            }
            _ => {
                self.check_object_field(reg, &state, kind.field())?;
                LockOwner::Object
            }
        };
        let lock = Lock { kind, owner };
        let name = match kind {
            LockKind::Spin => "bpf_spin",
            LockKind::Resilient | LockKind::ResilientIrq => "bpf_res_spin",
        };
        if takes {
            let is_same = |held: &Reference| {
                let same = |held: Lock| held.kind != LockKind::Spin && held.owner == owner;
                held.id == state.id && held.lock().is_some_and(same)
            };
            if kind == LockKind::Spin && self.held_lock().is_some() {
                reject!(EINVAL, "Locking two bpf_spin_locks are not allowed");
            }
            if kind != LockKind::Spin && self.state.refs.newest_first().any(is_same) {
                reject!(
                    EINVAL,
                    "Acquiring the same lock again, AA deadlock detected"
                );
            }
            self.state.refs.push(Reference {
                id: state.id,
                pc: self.pc(),
                kind: ReferenceKind::Lock(lock),
            });
            return Ok(());
        }
        let Some(last) = self.held_lock().copied() else {
            reject!(EINVAL, "{name}_unlock without taking a lock");
        };
        let is_it = |held: &Reference| held.id == state.id && held.lock() == Some(lock);
        if !self.state.refs.newest_first().any(is_it) {
            reject!(EINVAL, "{name}_unlock of different lock");
        }
        if last.id != state.id || last.lock().map(|last| last.owner) != Some(owner) {
            reject!(EINVAL, "{name}_unlock cannot be out of order");
        }
        self.state.refs.remove(is_it);
        self.invalidate_borrowed();
        Ok(())
    }

    /// Makes non-owning references invalid: without the lock, others may remove and
    /// drop the objects (`invalidate_non_owning_refs`).
    fn invalidate_borrowed(&mut self) {
        let borrowed = TypeFlags::MEM_ALLOC | TypeFlags::NON_OWN_REF;
        let invalid = self.privileges.invalid();
        for reg in self.state.all_regs_mut() {
            if matches!(reg.kind, Kind::BtfId { .. }) && reg.flags.contains(borrowed) {
                *reg = invalid;
            }
        }
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
        let map_name = self.maps.name(map);
        let off = constant_offset(reg, state, kind)?;
        if !self.maps.is_typed(map) {
            let name = kind.name();
            reject!(
                EINVAL,
                "map '{map_name}' has to have BTF in order to use {name}"
            );
        }
        check_place(self.maps.fields(map), ("map", &map_name), kind, off)
    }

    /// Checks that the register points to the start of this field of an allocated object.
    fn check_object_field(&self, reg: Reg, state: &RegState, kind: FieldKind) -> VerifyResult {
        let off = constant_offset(reg, state, kind)?;
        let fields = self.maps.fields_of(state);
        check_place(&fields, ("local", "kptr"), kind, off)
    }
}

/// The offset of a pointer to a special field.
fn constant_offset(reg: Reg, state: &RegState, kind: FieldKind) -> VerifyResult<i64> {
    let Some(var) = state.var.value() else {
        reject!(
            EINVAL,
            "R{} doesn't have constant offset. {} has to be at the constant offset",
            reg.number(),
            kind.name()
        );
    };
    Ok(var.cast_signed().wrapping_add(state.off.into()))
}

/// Checks that the first field of this kind is at `off`. `owner` is what has the fields, and
/// its name.
fn check_place(
    fields: &[SpecialField],
    owner: (&str, &str),
    kind: FieldKind,
    off: i64,
) -> VerifyResult {
    let name = kind.name();
    let Some(field) = fields.iter().find(|field| field.kind == kind) else {
        let (what, of) = owner;
        reject!(EINVAL, "{what} '{of}' has no valid {name}");
    };
    if off != i64::from(field.off) {
        reject!(
            EINVAL,
            "off {off} doesn't point to 'struct {name}' that is at {}",
            field.off
        );
    }
    Ok(())
}
