//! The way back through the kept states (`__mark_chain_precision`).
//!
//! From an instruction that needs to know a number, back to where the number came
//! from: instruction by instruction to the state that was kept last, then from there to
//! the one before. In each of these states what is wanted is marked as precise, until
//! nothing is wanted or all of it is marked already. The state in which the walk stands
//! gets no marks: they count only in comparisons with kept states.

use super::back::{Back, StepBack};
use super::marks::{Marks, bits};
use super::trodden::Trodden;
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::env::Touched;
use crate::verifier::log::{Loaded, Log, RegMask, SlotMask, StateText};
use crate::verifier::maps::Maps;
use crate::verifier::prune::Arena;
use crate::verifier::reject::{Checked, reject};
use crate::verifier::state::{NO_PC, State, StateId, Step};
use crate::verifier::structure::Structure;

/// What the way back needs.
pub(crate) struct Chain<'a> {
    pub program: &'a Program,
    pub maps: &'a Maps<'a>,
    pub structure: &'a Structure,
    pub arena: &'a mut Arena,
    pub log: &'a mut Log,
}

/// How the way through the instructions since a state was kept ended.
enum Way {
    /// Nothing is wanted any more.
    Done,
    /// At the kept state, before this instruction.
    Kept,
    Unsupported,
}

impl Chain<'_> {
    /// Marks what `marks` wants of the state `start`, which stands before `pc`. Whether
    /// a mark was new. `trodden` is given if `start` is where the walk stands.
    pub(crate) fn mark(
        &mut self,
        start: &State,
        pc: Pc,
        mut marks: Marks,
        mut trodden: Option<&mut Trodden>,
    ) -> Checked<bool> {
        let mut changed = false;
        if marks.is_empty() {
            return Ok(changed);
        }
        if self.log.is_full() {
            // The log has every step.
            trodden = None;
        }
        let (mut first, mut last, mut next) = (start.first, pc, None);
        let mut kept = None;
        loop {
            if self.log.is_full() {
                self.log.write(format_args!(
                    "mark_precise: frame{}: last_idx {} first_idx {} subseq_idx {} \n",
                    marks.frame,
                    last.0.cast_signed(),
                    first.0.cast_signed(),
                    next.unwrap_or(NO_PC).0.cast_signed(),
                ));
            }
            if last == NO_PC {
                return self
                    .mark_arguments(kept, start, &mut marks)
                    .map(|new| changed | new);
            }
            let way = self.follow(start, kept, last, &mut next, &mut marks, trodden.take())?;
            match way {
                Way::Done => return Ok(changed),
                Way::Kept => {}
                Way::Unsupported => {
                    self.mark_all(start);
                    return Ok(changed);
                }
            }
            let Some(parent) = kept.map_or(start, |id| self.arena.get(id)).parent else {
                break;
            };
            changed |= self.mark_kept(parent, &mut marks)?;
            if marks.is_empty() {
                return Ok(changed);
            }
            next = Some(first);
            let state = self.arena.get(parent);
            (first, last) = (state.first, state.last);
            kept = Some(parent);
        }
        // Something was missed.
        self.mark_all(start);
        Ok(changed)
    }

    /// Back from `last` to where the state was kept that `kept`, or else `start`, came
    /// from. The instruction before which `start` stands is not walked yet.
    fn follow(
        &mut self,
        start: &State,
        kept: Option<StateId>,
        last: Pc,
        next: &mut Option<Pc>,
        marks: &mut Marks,
        mut trodden: Option<&mut Trodden>,
    ) -> Checked<Way> {
        let state = kept.map_or(start, |id| self.arena.get(id));
        let code = &self.structure.code;
        let mut pc = last;
        let mut steps = state.history.as_slice();
        let mut walked = kept.is_some();
        loop {
            // The second slot of a 64-bit immediate is nothing to go back over.
            if walked && let Some(insn) = code.insn(pc) {
                if let Some(trodden) = &mut trodden
                    && trodden.visit(pc, steps, state.history.len(), marks)
                {
                    return Ok(Way::Done);
                }
                if self.log.is_full() {
                    self.log.write(format_args!(
                        "mark_precise: frame{}: regs={} stack={} before {}: {}\n",
                        marks.frame,
                        RegMask(marks.regs(marks.frame)),
                        SlotMask(marks.slots(marks.frame)),
                        pc,
                        insn.text(&Loaded(self.program)),
                    ));
                }
                let back = StepBack {
                    structure: self.structure,
                    pc,
                    insn,
                    next: *next,
                    step: steps.last().filter(|step| step.pc == pc),
                };
                if back.take(marks)? == Back::Unsupported {
                    return Ok(Way::Unsupported);
                }
            }
            walked = true;
            if marks.is_empty() {
                return Ok(Way::Done);
            }
            *next = Some(pc);
            match before(state.first, pc, &mut steps) {
                None => return Ok(Way::Kept),
                Some(before) => pc = before,
            }
            if pc.index() >= code.len() {
                reject!(
                    EFAULT,
                    "verifier bug: backtracking idx {}",
                    pc.0.cast_signed()
                );
            }
        }
    }

    /// Marks what is wanted of a kept state. What is marked already, or no number, is
    /// not wanted any more.
    fn mark_kept(&mut self, id: StateId, marks: &mut Marks) -> Checked<bool> {
        let mut changed = false;
        for number in (0..=marks.frame).rev() {
            let state = self.arena.get_mut(id);
            if let Some(frame) = state.frames.get_mut(number) {
                for at in bits(marks.regs(number).into()) {
                    match frame.regs.get_mut(at) {
                        Some(reg) if reg.is_scalar() && !reg.precise => {
                            reg.precise = true;
                            changed = true;
                        }
                        _ => marks.clear_reg(number, at),
                    }
                }
                let total = frame.stack.len();
                for at in bits(marks.slots(number)) {
                    match frame.stack.get_mut(at) {
                        Some(slot) if slot.is_scalar_spill() && !slot.reg.precise => {
                            slot.reg.precise = true;
                            changed = true;
                        }
                        Some(_) => marks.clear_slot(number, at),
                        None => reject!(
                            EFAULT,
                            "verifier bug: stack slot {at}, total slots {total} \
                             (i >= func->allocated_stack / BPF_REG_SIZE)"
                        ),
                    }
                }
            }
            if self.log.is_full() {
                self.log.write(format_args!(
                    "mark_precise: frame{number}: parent state regs={} stack={}: {}\n",
                    RegMask(marks.regs(number)),
                    SlotMask(marks.slots(number)),
                    StateText {
                        program: self.program,
                        maps: self.maps,
                        state: self.arena.get(id),
                        frame: number,
                        touched: Touched::ALL,
                    },
                ));
            }
        }
        Ok(changed)
    }

    /// The way ended at the entry of a function that is verified on its own: its
    /// arguments may be wanted, and nothing else.
    fn mark_arguments(
        &mut self,
        kept: Option<StateId>,
        start: &State,
        marks: &mut Marks,
    ) -> Checked<bool> {
        let state = kept.map_or(start, |id| self.arena.get(id));
        let outermost = state.frames.first();
        let subprogram = outermost.map_or(0, |frame| frame.subprogram);
        let (regs, slots) = (marks.regs(marks.frame), marks.slots(marks.frame));
        let own = state.frames.len() == 1
            && subprogram > 0
            && outermost.is_some_and(|frame| frame.callsite.is_none());
        if !own || slots != 0 || regs & !Marks::ARGUMENTS != 0 {
            reject!(
                EFAULT,
                "verifier bug: backtracking func entry subprog {subprogram} \
                 reg_mask {regs:x} stack_mask {slots:x}"
            );
        }
        let mut changed = false;
        let Some(id) = kept else {
            return Ok(changed);
        };
        let frame = self.arena.get_mut(id).frames.first_mut();
        for (at, reg) in frame
            .into_iter()
            .flat_map(|frame| frame.regs.iter_mut().enumerate())
        {
            if regs >> at & 1 == 1 && reg.is_scalar() {
                reg.precise = true;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Marks every number of every kept state that led here
    /// (`mark_all_scalars_precise`).
    pub(crate) fn mark_all(&mut self, start: &State) {
        if self.log.is_full() {
            self.log.write(format_args!(
                "mark_precise: frame{}: falling back to forcing all scalars precise\n",
                start.current()
            ));
        }
        let mut parent = start.parent;
        while let Some(id) = parent {
            let state = self.arena.get_mut(id);
            parent = state.parent;
            for (number, frame) in state.frames.iter_mut().enumerate() {
                // The last register is the frame pointer.
                for (at, reg) in frame.regs.iter_mut().enumerate().rev().skip(1).rev() {
                    if reg.is_scalar() && !reg.precise {
                        reg.precise = true;
                        if self.log.is_full() {
                            self.log.write(format_args!(
                                "force_precise: frame{number}: forcing r{at} to be precise\n"
                            ));
                        }
                    }
                }
                for (at, slot) in frame.stack.iter_mut().enumerate() {
                    if slot.is_scalar_spill() && !slot.reg.precise {
                        slot.reg.precise = true;
                        if self.log.is_full() {
                            self.log.write(format_args!(
                                "force_precise: frame{number}: forcing fp-{} to be precise\n",
                                (at + 1) * 8
                            ));
                        }
                    }
                }
            }
        }
    }
}

/// The instruction that was walked before the one at `pc`, which is behind `steps`;
/// none at the start (`get_prev_insn_idx`). The first instruction may be walked more
/// than once: the start is where its steps end, or where it was jumped to from before.
pub(crate) fn before(first: Pc, pc: Pc, steps: &mut &[Step]) -> Option<Pc> {
    if pc == first && (steps.is_empty() || steps.len() == 1 && steps[0].pc == pc) {
        return None;
    }
    match steps.split_last() {
        Some((step, earlier)) if step.pc == pc => {
            *steps = earlier;
            Some(step.prev)
        }
        _ => Some(Pc(pc.0.wrapping_sub(1))),
    }
}
