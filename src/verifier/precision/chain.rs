//! Backtracking through the checkpoints (`__mark_chain_precision`).
//!
//! It starts at an instruction that needs a precise scalar and goes back to the origin of
//! the value: instruction by instruction to the last checkpoint, then to the one before it.
//! In each checkpoint the wanted scalars are marked as precise, until nothing is wanted or
//! all of it is marked already. The current state gets no marks: only checkpoints are
//! compared.

use super::affected::Affected;
use super::back::{Back, StepBack};
use super::backtrack_cache::BacktrackCache;
use super::marks::{Marks, bits};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::history::{LinkedSet, NO_PC, Steps};
use crate::verifier::log::{Loaded, Log, RegMask, SlotMask, StateText, Touched};
use crate::verifier::maps::Maps;
use crate::verifier::prune::Arena;
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::state::{Segment, State, StateId};
use crate::verifier::structure::Structure;

/// The parts of the verifier that backtracking uses.
pub(crate) struct Chain<'a> {
    pub program: &'a Program,
    pub maps: &'a Maps<'a>,
    pub structure: &'a Structure,
    pub arena: &'a mut Arena,
    pub log: &'a mut Log,
}

/// How backtracking to a checkpoint ended.
enum Backtracked {
    /// Nothing is wanted any more.
    Done,
    /// At the checkpoint.
    AtCheckpoint,
    Unsupported,
}

impl Chain<'_> {
    /// Marks the scalars in `marks`, starting from the state `start`, which is before `pc`.
    /// Returns whether a mark was new. Pass `cache` only if `start` is the current state.
    pub(crate) fn mark(
        &mut self,
        start: &State,
        pc: Pc,
        mut marks: Marks,
        mut cache: Option<&mut BacktrackCache>,
    ) -> VerifyResult<bool> {
        let mut changed = false;
        if marks.is_empty() {
            return Ok(changed);
        }
        if self.log.is_full() {
            // The log needs every step.
            cache = None;
        }
        let (mut first, mut last, mut next) = (start.first, pc, None);
        let mut checkpoint = None;
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
                    .mark_arguments(checkpoint, start, &mut marks)
                    .map(|new| changed | new);
            }
            let end = self.follow(start, checkpoint, last, &mut next, &mut marks, cache.take())?;
            match end {
                Backtracked::Done => return Ok(changed),
                Backtracked::AtCheckpoint => {}
                Backtracked::Unsupported => {
                    self.mark_all(start);
                    return Ok(changed);
                }
            }
            let Some(parent) = self.arena.segment(start, checkpoint).parent else {
                break;
            };
            changed |= self.mark_checkpoint(parent, &mut marks)?;
            if marks.is_empty() {
                return Ok(changed);
            }
            next = Some(first);
            Segment { first, last, .. } = self.arena.get(parent).segment();
            checkpoint = Some(parent);
        }
        // The origin was not found.
        self.mark_all(start);
        Ok(changed)
    }

    /// Goes back from `last` to the parent checkpoint of `checkpoint`, or of `start` without it.
    /// The instruction at which `start` is has not been executed yet.
    fn follow(
        &mut self,
        start: &State,
        checkpoint: Option<StateId>,
        last: Pc,
        next: &mut Option<Pc>,
        marks: &mut Marks,
        mut cache: Option<&mut BacktrackCache>,
    ) -> VerifyResult<Backtracked> {
        let Segment { first, history, .. } = self.arena.segment(start, checkpoint);
        let (code, all) = (&self.structure.code, history.len());
        let (full_log, addresses) = (self.log.is_full(), self.log.shows_addresses());
        let mut pc = last;
        let mut steps = history;
        let mut executed = checkpoint.is_some();
        let mut iteration = None;
        loop {
            if executed && !full_log {
                if let Some(cache) = &mut cache
                    && cache.visit(pc, steps, all, marks)
                {
                    return Ok(Backtracked::Done);
                }
                let earlier = self.skip_unaffected(steps, first, pc, marks.wanted());
                if earlier != pc {
                    *next = Some(Pc(earlier.0 + 1));
                    pc = earlier;
                    continue;
                }
                if steps.repeats_at(pc) > 1
                    && let Some(here) = marks.only_here()
                {
                    // An iteration of a loop that changes nothing, nor do equal ones before it.
                    let same = (steps.words(), *next, here);
                    if iteration.replace(same) == Some(same) {
                        steps.skip_repeats();
                    }
                }
            }
            // Skips the second slot of a 64-bit immediate.
            if executed && let Some(insn) = code.insn(pc) {
                if full_log {
                    self.log.write(format_args!(
                        "mark_precise: frame{}: regs={} stack={} before {}: {}\n",
                        marks.frame,
                        RegMask(marks.regs(marks.frame)),
                        SlotMask(marks.slots(marks.frame)),
                        pc,
                        insn.text(&Loaded {
                            program: self.program,
                            addresses,
                        }),
                    ));
                }
                let step = steps.last_at(pc);
                let links = step.map_or(LinkedSet::default(), |_| steps.links());
                if !links.is_empty() || self.structure.info(pc).affected.meets(marks.wanted()) {
                    let back = StepBack {
                        structure: self.structure,
                        pc,
                        insn,
                        next: *next,
                        step,
                        links,
                    };
                    if back.take(marks)? == Back::Unsupported {
                        return Ok(Backtracked::Unsupported);
                    }
                }
            }
            executed = true;
            if marks.is_empty() {
                return Ok(Backtracked::Done);
            }
            *next = Some(pc);
            match steps.before(first, pc) {
                None => return Ok(Backtracked::AtCheckpoint),
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

    /// Goes back over instructions that change nothing of what is wanted: to one that may, to a
    /// step of the history, to `first`, or to one that the cache has to see.
    fn skip_unaffected(&self, steps: Steps<'_>, first: Pc, from: Pc, wanted: Affected) -> Pc {
        let (insns, step) = (&self.structure.insns, steps.last_pc());
        let mut pc = from;
        let unaffected = |pc: Pc| {
            let info = insns.get(pc.index());
            info.is_some_and(|info| !info.affected.meets(wanted))
        };
        while pc != first && Some(pc) != step && pc.0 > 0 && unaffected(pc) {
            pc = Pc(pc.0 - 1);
            if BacktrackCache::has_to_see(pc) {
                break;
            }
        }
        pc
    }

    /// Marks the wanted scalars of a checkpoint. Those that are marked already, and
    /// registers that are not scalars, are not wanted any more.
    fn mark_checkpoint(&mut self, id: StateId, marks: &mut Marks) -> VerifyResult<bool> {
        let mut changed = false;
        for number in (0..=marks.frame).rev() {
            let (state, pools) = self.arena.state_and_pools(id);
            if let Some(frame) = state.frames.get_mut(number) {
                for at in bits(marks.regs(number).into()) {
                    match frame.regs.get_mut(at).map(|reg| pools.mark_reg(reg)) {
                        Some(true) => changed = true,
                        _ => marks.clear_reg(number, at),
                    }
                }
                let total = frame.stack.len();
                for at in bits(marks.slots(number)) {
                    match frame.stack.get_mut(at).map(|slot| pools.mark_slot(slot)) {
                        Some(true) => changed = true,
                        Some(false) => marks.clear_slot(number, at),
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
                        state: &self.arena.pools().restored(self.arena.get(id)),
                        frame: number,
                        touched: Touched::ALL,
                    },
                ));
            }
        }
        Ok(changed)
    }

    /// At the entry of a function that is verified on its own, only its arguments may still
    /// be wanted.
    fn mark_arguments(
        &mut self,
        checkpoint: Option<StateId>,
        start: &State,
        marks: &mut Marks,
    ) -> VerifyResult<bool> {
        let (subprogram, alone) = match checkpoint {
            Some(id) => self.arena.get(id).root(),
            None => start.root(),
        };
        let (regs, slots) = (marks.regs(marks.frame), marks.slots(marks.frame));
        if subprogram == 0 || !alone || slots != 0 || regs & !Marks::ARGUMENTS != 0 {
            reject!(
                EFAULT,
                "verifier bug: backtracking func entry subprog {subprogram} \
                 reg_mask {regs:x} stack_mask {slots:x}"
            );
        }
        let mut changed = false;
        let Some(id) = checkpoint else {
            return Ok(changed);
        };
        let (state, pools) = self.arena.state_and_pools(id);
        let frame = state.frames.first_mut().into_iter();
        for (at, reg) in frame.flat_map(|frame| frame.regs.iter_mut().enumerate()) {
            if regs >> at & 1 == 1 && pools.regs.get(*reg).is_scalar() {
                pools.mark_reg(reg);
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Marks every scalar of every checkpoint on the path (`mark_all_scalars_precise`).
    pub(crate) fn mark_all(&mut self, start: &State) {
        if self.log.is_full() {
            self.log.write(format_args!(
                "mark_precise: frame{}: falling back to forcing all scalars precise\n",
                start.current()
            ));
        }
        let mut parent = start.parent;
        while let Some(id) = parent {
            let (state, pools) = self.arena.state_and_pools(id);
            parent = state.parent;
            for (number, frame) in state.frames.iter_mut().enumerate() {
                // The last register is the frame pointer.
                for (at, reg) in frame.regs.iter_mut().enumerate().rev().skip(1).rev() {
                    if pools.mark_reg(reg) && self.log.is_full() {
                        self.log.write(format_args!(
                            "force_precise: frame{number}: forcing r{at} to be precise\n"
                        ));
                    }
                }
                for (at, slot) in frame.stack.iter_mut().enumerate() {
                    if pools.mark_slot(slot) && self.log.is_full() {
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
