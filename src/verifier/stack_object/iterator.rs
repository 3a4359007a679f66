//! Open-coded iterators: stack slots that kfuncs create, advance and destroy
//! (`struct bpf_iter_num` and its siblings).
//!
//! Advancing branches: in one state the iterator is drained and the result is null, in the
//! other one the iterator has taken one more step. The loop is explored until its state is
//! subsumed by that of an earlier step; scalars that differ between steps and need not be
//! precise are widened, so that this happens soon.

use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::call::{IteratorKind, IteratorStep, TypeFlags};
use crate::util::{Errno, Pc};
use crate::verifier::branch::not_null;
use crate::verifier::env::Verifier;
use crate::verifier::pool::Pools;
use crate::verifier::reg::{IterState, Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};
use crate::verifier::stack::{SLOT, Slot, SlotKind};
use crate::verifier::state::{SavedState, State};

/// How messages call it.
const NAME: &str = "iter";

/// A kfunc's iterator argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IteratorArgument<'a> {
    /// The register.
    pub reg: Reg,
    /// The kind of iterator that the parameter's type names.
    pub kind: IteratorKind,
    /// What the kfunc does to it; `None` if it only uses the iterator.
    pub step: Option<IteratorStep>,
    /// The kfunc's name.
    pub kfunc: &'a str,
    /// Whether the kfunc requires an RCU read section (`KF_RCU_PROTECTED`).
    pub rcu_protected: bool,
}

/// The place of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IteratorPlace {
    frame: u8,
    /// Its main slot.
    slot: usize,
    /// The reference that it stands for.
    pub ref_id: u32,
    /// Whether its elements are protected by an RCU read section.
    pub in_rcu: bool,
}

impl Verifier<'_> {
    /// Checks an iterator argument; creates or destroys the iterator (`process_iter_arg`).
    /// Returns the place of an existing one; for a kfunc that advances it, the caller passes
    /// the place to [`process_iterator_next`](Self::process_iterator_next) once `r0` is set.
    pub(crate) fn process_iterator_argument(
        &mut self,
        argument: &IteratorArgument<'_>,
    ) -> VerifyResult<Option<IteratorPlace>> {
        let state = *self.reg(argument.reg);
        let number = usize::from(argument.reg.number()).saturating_sub(1);
        let Kind::Stack { frame } = state.kind else {
            reject!(
                EINVAL,
                "arg#{number} expected pointer to an iterator on stack"
            );
        };
        let count = self.iterator_slots(argument.kind)?;
        if argument.step == Some(IteratorStep::New) {
            self.new_iterator(argument, &state, frame, count)?;
            return Ok(None);
        }
        let uninitialised = format!(
            "expected an initialized {} as arg #{number}",
            short_name(argument.kind)
        );
        let main = match self.object_slot(&state, frame, NAME, count) {
            Ok(Some(main)) => main,
            Ok(None) => reject!(EINVAL, "{uninitialised}"),
            Err(why) => return Err(why.and(uninitialised)),
        };
        for slot in super::slots(main, count) {
            let Some(part) = self.object_at(frame, slot) else {
                reject!(EINVAL, "{uninitialised}");
            };
            if part.reg.flags.contains(TypeFlags::PTR_UNTRUSTED) {
                reject!(EPROTO, "expected an RCU CS when using {}", argument.kfunc);
            }
            let same_kind =
                matches!(part.reg.kind, Kind::Iter { kind, .. } if kind == argument.kind);
            // Only the main slot has the reference.
            let is_main = part.reg.ref_id != 0;
            if !same_kind || is_main != (slot == main) || !part.is_all(SlotKind::Iter) {
                reject!(EINVAL, "{uninitialised}");
            }
        }
        self.read_object(frame, main, count);
        let main_reg = self
            .object_at(frame, main)
            .map_or(RegState::NOT_INIT, |part| part.reg);
        let place = IteratorPlace {
            frame,
            slot: main,
            ref_id: main_reg.ref_id,
            in_rcu: main_reg.flags.contains(TypeFlags::MEM_RCU),
        };
        if argument.step == Some(IteratorStep::Destroy) {
            self.destroy_iterator(place, count);
        }
        Ok(Some(place))
    }

    /// The number of slots of an iterator of this kind.
    fn iterator_slots(&self, kind: IteratorKind) -> VerifyResult<usize> {
        let btf = self.program.kernel_btf.as_ref();
        let structure = btf.and_then(|btf| btf.find(kind.structure(), BtfKind::Struct));
        let size = structure.and_then(|structure| structure.size());
        match size.and_then(|size| usize::try_from(size).ok()) {
            Some(size) if size >= SLOT => Ok(size / SLOT),
            _ => unmodelled!(KernelBtf),
        }
    }

    /// Creates an iterator (`is_iter_reg_valid_uninit`, `mark_stack_slots_iter`).
    fn new_iterator(
        &mut self,
        argument: &IteratorArgument<'_>,
        state: &RegState,
        frame: u8,
        count: usize,
    ) -> VerifyResult {
        let text = format!(
            "expected uninitialized {} as arg #{}",
            short_name(argument.kind),
            argument.reg.number().saturating_sub(1)
        );
        let existing = self
            .object_slot(state, frame, NAME, count)
            .map_err(|why| why.and(&text))?;
        if let Some(main) = existing {
            let is_part = |slot: &Slot| slot.bytes.contains(&SlotKind::Iter);
            let mut parts = super::slots(main, count);
            if parts.any(|at| self.object_at(frame, at).is_some_and(is_part)) {
                reject!(EINVAL, "{text}");
            }
        }
        self.write_object(argument.reg, count)?;
        let Some(main) = self.object_slot(state, frame, NAME, count)? else {
            reject!(ERANGE, "");
        };
        let id = self.acquire();
        let flags = match (argument.rcu_protected, self.in_rcu_section()) {
            (false, _) => TypeFlags::empty(),
            (true, true) => TypeFlags::MEM_RCU,
            (true, false) => TypeFlags::PTR_UNTRUSTED,
        };
        let kind = Kind::Iter {
            kind: argument.kind,
            state: IterState::Active,
            depth: 0,
        };
        for slot in super::slots(main, count) {
            let mut part = RegState::pointer(kind, flags);
            part.ref_id = if slot == main { id } else { 0 };
            if let Some(place) = self.object_at_mut(frame, slot) {
                place.reg = part;
                place.bytes = [SlotKind::Iter; SLOT];
            }
            self.stack_write(frame, 1 << slot);
            self.log.touch_slot(slot);
        }
        Ok(())
    }

    /// Releases the iterator's reference, and all that was got from it, and empties its
    /// slots (`unmark_stack_slots_iter`).
    fn destroy_iterator(&mut self, place: IteratorPlace, count: usize) {
        self.release(place.ref_id);
        for slot in super::slots(place.slot, count) {
            if let Some(part) = self.object_at_mut(place.frame, slot) {
                *part = Slot::EMPTY;
            }
            self.stack_write(place.frame, 1 << slot);
            self.log.touch_slot(slot);
        }
    }

    /// After a kfunc has advanced an iterator and `r0` is set: pushes a state in which there
    /// is an element, and continues with the drained iterator and null
    /// (`process_iter_next_call`).
    pub(crate) fn process_iterator_next(&mut self, place: IteratorPlace, next: Pc) -> VerifyResult {
        let pc = self.pc();
        let state = self
            .object_at(place.frame, place.slot)
            .map(|part| part.reg.kind);
        let Some(Kind::Iter { state, .. }) = state else {
            reject!(EFAULT, "verifier bug: unexpected iterator state");
        };
        if state == IterState::Active {
            // There is a checkpoint just before this instruction: skip it.
            let before = self.previous_entry(pc);
            let queued = self.push_branch(next, pc, Errno::ENOMEM)?;
            if let Some(Kind::Iter { depth, .. }) = kind_at(queued, place) {
                *depth = depth.wrapping_add(1);
            }
            if let Some(before) = before {
                self.widen_pending(before);
            }
            if let Some(pending) = self.worklist.last_mut() {
                not_null(&self.maps, pending.reg_mut(Reg::R0));
            }
        }
        if let Some(Kind::Iter { state, .. }) = kind_at(&mut self.state, place) {
            *state = IterState::Drained;
        }
        self.set_reg(Reg::R0, RegState::constant(0));
        Ok(())
    }

    /// Whether the iterator that the next instruction advances is active: its argument is
    /// known to be valid, since the state is subsumed by one in which it was.
    pub(crate) fn advances_active_iterator(&self) -> bool {
        let state = self.reg(Reg::R1);
        let Kind::Stack { frame } = state.kind else {
            return false;
        };
        let main = self.object_slot(state, frame, NAME, 1).ok().flatten();
        let part = main.and_then(|main| self.object_at(frame, main));
        part.is_some_and(|part| {
            let active = IterState::Active;
            matches!(part.reg.kind, Kind::Iter { state, .. } if state == active)
        })
    }
}

/// The part of an iterator in its main slot.
fn kind_at(state: &mut State, place: IteratorPlace) -> Option<&mut Kind> {
    let frame = state.frames.get_mut(usize::from(place.frame))?;
    Some(&mut frame.stack.get_mut(place.slot)?.reg.kind)
}

/// Whether an iterator that is active in the old state has taken another number of steps in
/// the current one (`iter_active_depths_differ`): then the loop may end.
pub(crate) fn steps_differ(old: &SavedState, pools: &Pools, current: &State) -> bool {
    let mut frames = old.frames.iter().zip(&current.frames);
    frames.any(|(old, current)| {
        let mut slots = old.stack.iter().enumerate();
        slots.any(|(at, slot)| {
            let slot = pools.slots.get(*slot);
            match slot.reg.kind {
                Kind::Iter {
                    state: IterState::Active,
                    depth,
                    ..
                } if slot.bytes[0] == SlotKind::Iter => {
                    let current = current.stack.get(at).map(|slot| slot.reg.kind);
                    !matches!(current, Some(Kind::Iter { depth: steps, .. }) if steps == depth)
                }
                _ => false,
            }
        })
    })
}

/// The name in messages: `iter_num`.
fn short_name(kind: IteratorKind) -> &'static str {
    let name = kind.structure();
    name.strip_prefix("bpf_").unwrap_or(name)
}
