//! Whether a state's objects are those of a run: typed pointers, dynptrs, iterators, saved
//! interrupt states, and what has to be released.
//!
//! The size of a dynptr's memory is not part of a state.

use super::holds::{Comparison, distance};
use super::run::{Held, ObjectPlace};
use crate::btf::{Btf, Kind as BtfKind};
use crate::spec::call::TypeFlags;
use crate::util::TypeId;
use crate::verifier::log::dynptr_name;
use crate::verifier::references::ReferenceKind;
use crate::verifier::reg::{DynptrKind, IterState, Kind, ObjectType, RegState};
use crate::verifier::stack::{Slot, SlotKind};
use crate::verifier::state::SavedState;

/// Pointers to objects that are certainly there.
const VALID: TypeFlags = TypeFlags::PTR_TRUSTED
    .union(TypeFlags::MEM_RCU)
    .union(TypeFlags::MEM_ALLOC);

impl Comparison<'_> {
    /// Whether a typed pointer of a state can have this value. Through others than valid
    /// pointers the kernel allows any address, and checks each load at run time.
    pub(super) fn object(&self, reg: &RegState, ty: ObjectType, value: u64) -> bool {
        let is_valid = reg.ref_id != 0 || reg.flags.intersects(VALID);
        let Some(var) = reg.var.value() else {
            return true;
        };
        if !is_valid || reg.flags.contains(TypeFlags::PTR_UNTRUSTED) {
            return true;
        }
        let start = distance(reg, value, var);
        if start == 0 {
            return false;
        }
        // A per-CPU pointer is no address of an object.
        if reg.flags.contains(TypeFlags::MEM_PERCPU) {
            return true;
        }
        let is_held = reg.ref_id == 0 || !self.is_whole() || self.held.references.contains(&start);
        let place = self.run.object(start);
        let btf = ty.btf(self.program);
        is_held
            && place
                .zip(btf)
                .is_none_or(|(place, btf)| is_a(&place, btf, ty.id))
    }

    /// Whether the object in a stack slot is the run's.
    pub(super) fn slot_object(&self, slot: &Slot, frame: usize, number: usize) -> bool {
        let Some(address) = self.slot_address(frame, number) else {
            return true;
        };
        match (slot.bytes[0], slot.reg.kind) {
            (SlotKind::Dynptr, Kind::Dynptr { kind, first: true }) => self.dynptr(address, kind),
            (SlotKind::Iter, Kind::Iter { kind, state, .. }) if slot.reg.ref_id != 0 => {
                let held = self.run.iterator(address);
                held.is_some_and(|held| {
                    held.structure == kind.structure()
                        && (held.drained || state == IterState::Active)
                })
            }
            (SlotKind::IrqFlag, _) => self.held.interrupts.contains(&address),
            _ => true,
        }
    }

    /// Whether there is a dynptr of this kind; null if its creation failed.
    pub(super) fn dynptr(&self, address: u64, kind: DynptrKind) -> bool {
        let held = self.run.dynptr(address);
        held.is_some_and(|held| held.kind.is_none_or(|held| held == dynptr_name(kind)))
    }

    /// Whether the run holds no more references than a state, and is in the same critical
    /// sections. The number of references that it holds if not.
    pub(super) fn held(&self, state: &SavedState) -> Result<(), u64> {
        let count = |is: fn(ReferenceKind) -> bool| {
            let found = state.refs.newest_first().filter(|held| is(held.kind));
            found.count()
        };
        let Held {
            count: held,
            interrupts,
            rcu,
            preempt,
            ..
        } = &self.held;
        let agrees = !self.is_whole()
            || *held <= count(|kind| kind == ReferenceKind::Object)
                && interrupts.len() == count(|kind| kind == ReferenceKind::Irq)
                && *rcu == state.rcu_locks
                && *preempt == state.preempt_locks;
        if agrees { Ok(()) } else { Err(*held as u64) }
    }

    /// Whether the states have all frames of the run: a function that is explored on its own
    /// does not know what its callers hold.
    const fn is_whole(&self) -> bool {
        self.base == 0
    }
}

/// Whether the memory at a place can be an object of this type: a part of that object, or the
/// start of a larger one.
fn is_a(place: &ObjectPlace, btf: &Btf, id: TypeId) -> bool {
    let name = |btf: &Btf, id| {
        let found = btf.resolve(id).map(|ty| ty.name().to_owned());
        found.unwrap_or_default()
    };
    let (wanted, there) = (name(btf, id), name(&place.btf, place.ty));
    wanted.is_empty()
        || there.is_empty()
        || contains(&place.btf, place.ty, place.offset, &wanted)
        || place.offset == 0 && contains(btf, id, 0, &there)
}

/// Whether a type has a structure of this name at an offset.
fn contains(btf: &Btf, id: TypeId, offset: u64, name: &str) -> bool {
    let Ok(ty) = btf.resolve(id) else {
        return true;
    };
    if offset == 0 && crate::btf::essential_name(ty.name()) == crate::btf::essential_name(name) {
        return true;
    }
    let size = |id| btf.size_of(id).map_or(0, u64::from);
    if offset >= size(ty.id()) {
        // Memory behind the type, such as that of a flexible array.
        return true;
    }
    match ty.kind() {
        BtfKind::Array => ty.array().is_some_and(|array| {
            let element = size(array.element).max(1);
            contains(btf, array.element, offset % element, name)
        }),
        BtfKind::Struct | BtfKind::Union => ty.members().any(|member| {
            let start = u64::from(member.bit_offset / 8);
            (start..start + size(member.ty)).contains(&offset)
                && contains(btf, member.ty, offset - start, name)
        }),
        _ => false,
    }
}
