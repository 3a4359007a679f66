//! Dynptrs: two stack slots that refer to memory whose size is known only at run time
//! (`struct bpf_dynptr`).
//!
//! A dynptr of a ring buffer's record has a reference, which a helper must release; it can't
//! be overwritten. Others end when a store destroys them. Memory that a program gets from a
//! dynptr (a slice) becomes invalid with it: it has the dynptr's id, or its reference.

use smallvec::SmallVec;

use crate::isa::Reg;
use crate::spec::call::TypeFlags;
use crate::verifier::env::Verifier;
use crate::verifier::log::dynptr_name;
use crate::verifier::reg::{DynptrKind, Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack::{SLOT, Slot, SlotKind};

/// The number of slots (`BPF_DYNPTR_NR_SLOTS`).
const SLOTS: usize = 2;
/// How messages call it.
const NAME: &str = "dynptr";

/// What a call does to a dynptr argument (the flags of `ARG_PTR_TO_DYNPTR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DynptrArgument {
    /// It initialises the slots as a dynptr of this kind (`MEM_UNINIT`). A clone of a dynptr
    /// with a reference gets the same reference; it is 0 otherwise.
    New { kind: DynptrKind, parent_ref: u32 },
    /// It uses an initialised dynptr: of this kind, if one is given.
    Use {
        kind: Option<DynptrKind>,
        /// Whether the dynptr itself is not modified (`MEM_RDONLY`).
        constant: bool,
    },
}

/// An initialised dynptr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dynptr {
    /// What it refers to.
    pub kind: DynptrKind,
    /// Its id, which its slices have as `dynptr_id`.
    pub id: u32,
    /// The reference that it stands for, or 0.
    pub ref_id: u32,
}

impl DynptrKind {
    /// Whether the dynptr must be released (`dynptr_type_refcounted`).
    const fn is_counted(self) -> bool {
        matches!(self, Self::Ringbuf)
    }
}

impl Verifier<'_> {
    /// Checks a dynptr argument of a helper, a kfunc or a global function, and initialises a
    /// new dynptr (`process_dynptr_func`).
    pub(crate) fn process_dynptr_argument(
        &mut self,
        reg: Reg,
        argument: DynptrArgument,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let number = usize::from(reg.number()).saturating_sub(1);
        let frame = match state.kind {
            Kind::Stack { frame } if state.flags.is_empty() => Some(frame),
            Kind::Dynptr { .. } if state.flags.is_empty() => None,
            _ => reject!(
                EINVAL,
                "arg#{number} expected pointer to stack or const struct bpf_dynptr"
            ),
        };
        let (wanted, constant) = match argument {
            DynptrArgument::New { kind, parent_ref } => {
                return self.new_dynptr(reg, frame, kind, parent_ref);
            }
            DynptrArgument::Use { kind, constant } => (kind, constant),
        };
        if frame.is_none() && !constant {
            reject!(
                EINVAL,
                "cannot pass pointer to const bpf_dynptr, the helper mutates it"
            );
        }
        let text = format!("Expected an initialized dynptr as arg #{number}");
        let found = match self.dynptr_of(&state) {
            Ok(Some(found)) => found,
            Ok(None) => reject!(EINVAL, "{text}"),
            Err(why) => return Err(why.and(text)),
        };
        if let Some(wanted) = wanted
            && wanted != found.kind
        {
            reject!(
                EINVAL,
                "Expected a dynptr of type {} as arg #{number}",
                dynptr_name(wanted)
            );
        }
        if let Some(frame) = frame
            && let Some(main) = self.object_slot(&state, frame, NAME, SLOTS)?
        {
            self.read_object(frame, main, SLOTS);
        }
        Ok(())
    }

    /// The dynptr that a register points to, or that it is; `None` if there is none or it
    /// is not initialised (`is_dynptr_reg_valid_init`, `dynptr_id`, `dynptr_ref_obj_id`).
    pub(crate) fn dynptr_of(&self, state: &RegState) -> VerifyResult<Option<Dynptr>> {
        let of = |reg: &RegState, kind| Dynptr {
            kind,
            id: reg.id,
            ref_id: reg.ref_id,
        };
        let frame = match state.kind {
            Kind::Dynptr { kind, .. } => return Ok(Some(of(state, kind))),
            Kind::Stack { frame } => frame,
            _ => return Ok(None),
        };
        let Some(main) = self.object_slot(state, frame, NAME, SLOTS)? else {
            return Ok(None);
        };
        let second = main.checked_sub(1).and_then(|at| self.object_at(frame, at));
        let (Some(first), Some(second)) = (self.object_at(frame, main), second) else {
            return Ok(None);
        };
        let whole = first.is_all(SlotKind::Dynptr) && second.is_all(SlotKind::Dynptr);
        match first.reg.kind {
            Kind::Dynptr { kind, first: true } if whole => Ok(Some(of(&first.reg, kind))),
            _ => Ok(None),
        }
    }

    /// Checks that a call may release the dynptr of its argument: one on the stack with a
    /// reference (the part of `check_func_arg` for `OBJ_RELEASE`).
    pub(crate) fn check_dynptr_release(&self, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        let Kind::Stack { frame } = state.kind else {
            reject!(EINVAL, "cannot release unowned const bpf_dynptr");
        };
        let unacquired = format!("arg {} is an unacquired reference", reg.number());
        match self.object_slot(state, frame, NAME, SLOTS) {
            Err(why) => Err(why.and(unacquired)),
            // Whatever the slot holds: the argument's check follows.
            Ok(Some(main))
                if self
                    .object_at(frame, main)
                    .is_some_and(|slot| slot.reg.ref_id != 0) =>
            {
                Ok(())
            }
            Ok(_) => reject!(EINVAL, "{unacquired}"),
        }
    }

    /// Initialises the slots that a register points to.
    fn new_dynptr(
        &mut self,
        reg: Reg,
        frame: Option<u8>,
        kind: DynptrKind,
        parent_ref: u32,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let text = "Dynptr has to be an uninitialized dynptr";
        let Some(frame) = frame else {
            reject!(EINVAL, "{text}");
        };
        self.object_slot(&state, frame, NAME, SLOTS)
            .map_err(|why| why.and(text))?;
        self.write_object(reg, SLOTS)?;
        let Some(main) = self.object_slot(&state, frame, NAME, SLOTS)? else {
            reject!(ERANGE, "");
        };
        // The stores have destroyed any dynptr that these slots were part of.
        let mut half = RegState::pointer(Kind::Dynptr { kind, first: true }, TypeFlags::empty());
        half.id = self.new_id();
        if kind.is_counted() {
            half.ref_id = match parent_ref {
                0 => self.acquire(),
                parent => parent,
            };
        }
        for slot in super::slots(main, SLOTS) {
            half.kind = Kind::Dynptr {
                kind,
                first: slot == main,
            };
            if let Some(place) = self.object_at_mut(frame, slot) {
                place.reg = half;
                place.bytes = [SlotKind::Dynptr; SLOT];
            }
            self.stack_write(frame, 1 << slot);
        }
        Ok(())
    }

    /// Releases the dynptr of an argument: its reference, its clones in the same frame, and
    /// all slices (`unmark_stack_slots_dynptr`). Returns whether there was one.
    pub(crate) fn release_dynptr(&mut self, reg: Reg) -> VerifyResult<bool> {
        let state = *self.reg(reg);
        let Kind::Stack { frame } = state.kind else {
            reject!(
                EFAULT,
                "verifier bug: CONST_PTR_TO_DYNPTR cannot be released"
            );
        };
        let main = self.object_slot(&state, frame, NAME, SLOTS)?;
        let (Some(main), Some(dynptr)) = (main, self.dynptr_of(&state)?) else {
            return Ok(false);
        };
        if !dynptr.kind.is_counted() {
            self.clear_dynptr(frame, main);
            return Ok(true);
        }
        self.forget_slices(dynptr.ref_id);
        self.release(dynptr.ref_id);
        let count = self.state.frames.get(usize::from(frame));
        for at in 1..count.map_or(0, |frame| frame.stack.len()) {
            let is_clone = self.object_at(frame, at).is_some_and(|slot| {
                slot.reg.ref_id == dynptr.ref_id
                    && matches!(slot.reg.kind, Kind::Dynptr { first: true, .. })
            });
            if is_clone {
                self.clear_dynptr(frame, at);
            }
        }
        Ok(true)
    }

    /// Makes the slices of the dynptrs with this reference invalid: their memory goes
    /// with the reference. Linux 6.18 keeps those of `bpf_dynptr_slice`.
    fn forget_slices(&mut self, ref_id: u32) {
        let slots = self.state.frames.iter().flat_map(|frame| &frame.stack);
        let ids: SmallVec<[u32; 4]> = slots
            .map(|slot| slot.reg)
            .filter(|reg| matches!(reg.kind, Kind::Dynptr { .. }) && reg.ref_id == ref_id)
            .map(|reg| reg.id)
            .collect();
        let invalid = self.privileges.invalid();
        for reg in self.state.all_regs_mut() {
            if matches!(reg.kind, Kind::Mem { .. }) && ids.contains(&reg.dynptr_id) {
                *reg = invalid;
            }
        }
    }

    /// Empties both slots (`invalidate_dynptr`).
    fn clear_dynptr(&mut self, frame: u8, main: usize) {
        for slot in super::slots(main, SLOTS) {
            if let Some(place) = self.object_at_mut(frame, slot) {
                *place = Slot::EMPTY;
            }
            self.stack_write(frame, 1 << slot);
        }
    }

    /// Destroys the dynptr that a slot is part of, before a store to the slot: its slices
    /// become invalid (`destroy_if_dynptr_stack_slot`).
    pub(crate) fn destroy_dynptr_at(&mut self, frame: u8, slot: usize) -> VerifyResult {
        let Some(content) = self.object_at(frame, slot) else {
            return Ok(());
        };
        let Kind::Dynptr { kind, first } = content.reg.kind else {
            return Ok(());
        };
        if !content.is_all(SlotKind::Dynptr) {
            return Ok(());
        }
        if kind.is_counted() {
            reject!(EINVAL, "cannot overwrite referenced dynptr");
        }
        let id = content.reg.id;
        let main = if first { slot } else { slot + 1 };
        for slot in super::slots(main, SLOTS) {
            self.log.touch_slot(slot);
        }
        let invalid = self.privileges.invalid();
        for reg in self.state.all_regs_mut() {
            let is_plain = TypeFlags::PTR_MAYBE_NULL.contains(reg.flags);
            if is_plain && matches!(reg.kind, Kind::Mem { .. }) && reg.dynptr_id == id {
                *reg = invalid;
            }
        }
        self.clear_dynptr(frame, main);
        Ok(())
    }
}
