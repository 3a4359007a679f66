//! Checks that each instruction is reachable, and finds the prune points (`check_cfg` and
//! `visit_insn`, `kernel/bpf/verifier.c`).
//!
//! This is a depth-first search over the whole program, including callees and callbacks. An
//! instruction stays on the stack until its edges are explored, first the one to the next
//! instruction, then that to the jump's target. It is visited again each time it is on top.
//! At the last visit of a call its callee is complete, and the callee's effects are merged
//! into the caller.

use super::functions::{SubprogramInfo, containing};
use super::model::InsnInfo;
use super::raw::{self, Callee};
use super::summary::Callees;
use crate::isa::{Flow, RawInsn};
use crate::program::Program;
use crate::spec::Capabilities;
use crate::spec::helpers::{self, Attributes, Effects};
use crate::spec::kfuncs::KfuncFlags;
use crate::util::{Errno, HelperId, Pc, TypeId};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The progress of the search at an instruction, in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Unseen,
    Discovered,
    /// The edge to the next instruction was taken.
    Fallthrough,
    /// The edge to the jump's target was taken, too.
    Branch,
    Explored,
}

/// An edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Fallthrough,
    Branch,
}

impl Edge {
    const fn taken(self) -> Reach {
        match self {
            Self::Fallthrough => Reach::Fallthrough,
            Self::Branch => Reach::Branch,
        }
    }
}

/// Whether an instruction stays on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    Deeper,
}

/// The search.
struct Search<'a> {
    slots: &'a [RawInsn],
    callees: &'a Callees<'a>,
    subprograms: &'a mut [SubprogramInfo],
    insns: Vec<InsnInfo>,
    reach: Vec<Reach>,
    stack: Vec<Pc>,
}

/// Searches the program; returns the properties of each slot.
pub(super) fn check(
    program: &Program,
    callees: &Callees<'_>,
    subprograms: &mut [SubprogramInfo],
    exception_callback: Option<usize>,
) -> VerifyResult<Vec<InsnInfo>> {
    let exceptions = exception_callback
        .and_then(|at| subprograms.get(at))
        .map(|sub| sub.start);
    let slots = &program.insns;
    let mut search = Search {
        slots,
        callees,
        subprograms,
        insns: vec![InsnInfo::default(); slots.len()],
        reach: vec![Reach::Unseen; slots.len()],
        stack: Vec::new(),
    };
    search.run(Pc(0))?;
    if let Some(start) = exceptions.filter(|start| search.reached(*start) != Reach::Explored) {
        search.run(start)?;
    }
    search.check_all_reached()?;
    Ok(search.insns)
}

impl Search<'_> {
    fn run(&mut self, start: Pc) -> VerifyResult {
        self.set(start, Reach::Discovered);
        self.stack.push(start);
        while let Some(&pc) = self.stack.last() {
            if self.visit(pc).map_err(|reject| reject.at(pc))? == Step::Done {
                self.set(pc, Reach::Explored);
                self.stack.pop();
            }
        }
        Ok(())
    }

    /// Takes the next edge of an instruction.
    fn visit(&mut self, pc: Pc) -> VerifyResult<Step> {
        let slot = self.slots.get(pc.index()).copied().unwrap_or_default();
        if let Some(target) = raw::callback(slot, pc) {
            return self.visit_call(pc, Pc(pc.0 + 2), Some(target));
        }
        let next = i64::from(pc.0) + if slot.is_wide() { 2 } else { 1 };
        if let Some(callee) = raw::callee(slot, pc) {
            let mut target = None;
            match callee {
                Callee::Helper(helper) => self.visit_helper(pc, helper),
                Callee::Subprogram(to) => target = Some(to),
                Callee::Kfunc { id, fd_index } => self.visit_kfunc(pc, id, fd_index),
                Callee::Nothing => {}
            }
            return self.visit_call(pc, Pc(pc.0 + 1), target);
        }
        match Flow::of_raw(slot, pc) {
            Flow::Exit => Ok(Step::Done),
            Flow::Next => self.push(pc, next, Edge::Fallthrough),
            Flow::Goto(to) => {
                let step = self.push(pc, to, Edge::Fallthrough)?;
                if step == Step::Done {
                    self.mark_arrival(to);
                    self.mark_target(to);
                }
                Ok(step)
            }
            Flow::Branch(to) => {
                self.mark(pc, |info| {
                    info.prune_point = true;
                    info.force_checkpoint |= raw::is_may_goto(slot);
                });
                match self.push(pc, next, Edge::Fallthrough)? {
                    Step::Deeper => Ok(Step::Deeper),
                    Step::Done => self.push(pc, to, Edge::Branch),
                }
            }
        }
    }

    /// Visits a call that returns to `next`, or the load of a callback's address.
    fn visit_call(&mut self, pc: Pc, next: Pc, target: Option<i64>) -> VerifyResult<Step> {
        let step = self.push(pc, i64::from(next.0), Edge::Fallthrough)?;
        if step == Step::Deeper {
            return Ok(step);
        }
        self.mark_arrival(i64::from(next.0));
        let Some(target) = target else {
            return Ok(step);
        };
        self.mark(pc, |info| info.prune_point = true);
        self.merge_effects(pc, target);
        self.push(pc, target, Edge::Branch)
    }

    /// Records the effects of a helper on its caller.
    fn visit_helper(&mut self, pc: Pc, helper: HelperId) {
        let effects = helpers::helper(helper).map_or(Effects::empty(), |helper| helper.effects);
        self.mark_callback(pc, effects);
        let sleeps = self
            .callees
            .prototype(helper)
            .is_some_and(|prototype| prototype.attributes.contains(Attributes::MIGHT_SLEEP));
        let changes = effects.contains(Effects::CHANGES_PACKET);
        let at = containing(self.subprograms, pc);
        if let Some(sub) = self.subprograms.get_mut(at) {
            sub.might_sleep |= sleeps;
            sub.changes_pkt_data |= changes;
        }
    }

    /// Marks a call with a callback.
    fn mark_callback(&mut self, pc: Pc, effects: Effects) {
        if effects.contains(Effects::CALLS_BACK_LATER) {
            self.mark(pc, |info| info.prune_point = true);
        }
        if effects.contains(Effects::CALLS_BACK) {
            // The number of calls of the callback is not known: exploration returns to this
            // call until a state is subsumed.
            self.mark(pc, |info| {
                info.calls_callback = true;
                info.force_checkpoint = true;
                info.prune_point = true;
                info.jmp_point = true;
            });
        }
    }

    /// Records the effects of a kfunc on its caller.
    fn visit_kfunc(&mut self, pc: Pc, id: TypeId, fd_index: i16) {
        let Some(kfunc) = self.callees.kfunc_row(id, fd_index) else {
            return;
        };
        self.mark_callback(pc, kfunc.effects);
        if !kfunc.allows(self.callees.caller) {
            return;
        }
        if kfunc.flags.contains(KfuncFlags::ITER_NEXT) {
            // A loop over an iterator converges soon if each step is compared.
            self.mark(pc, |info| {
                info.prune_point = true;
                info.force_checkpoint = true;
                info.advances_iterator = true;
            });
        }
        let at = containing(self.subprograms, pc);
        if let Some(sub) = self.subprograms.get_mut(at) {
            sub.might_sleep |= kfunc.flags.contains(KfuncFlags::SLEEPABLE);
            sub.changes_pkt_data |= kfunc.effects.contains(Effects::CHANGES_PACKET);
        }
    }

    /// Merges the effects of the callee found so far into the caller.
    fn merge_effects(&mut self, pc: Pc, target: i64) {
        let callee = u32::try_from(target).unwrap_or_default();
        let callee = self
            .subprograms
            .get(containing(self.subprograms, Pc(callee)));
        let Some(&SubprogramInfo {
            changes_pkt_data,
            might_sleep,
            ..
        }) = callee
        else {
            return;
        };
        let caller = containing(self.subprograms, pc);
        if let Some(caller) = self.subprograms.get_mut(caller) {
            caller.changes_pkt_data |= changes_pkt_data;
            caller.might_sleep |= might_sleep;
        }
    }

    /// Takes an edge from `pc` to `to`, unless it was taken before (`push_insn`).
    fn push(&mut self, pc: Pc, to: i64, edge: Edge) -> VerifyResult<Step> {
        if self.reached(pc) >= edge.taken() {
            return Ok(Step::Done);
        }
        let target = u32::try_from(to).map(Pc);
        let Some(target) = target.ok().filter(|to| to.index() < self.slots.len()) else {
            reject!(EINVAL, "jump out of range from insn {pc} to {to}");
        };
        if edge == Edge::Branch {
            self.mark_arrival(to);
            self.mark_target(to);
        }
        match self.reached(target) {
            Reach::Unseen => {
                self.set(pc, edge.taken());
                self.set(target, Reach::Discovered);
                self.stack.push(target);
                return Ok(Step::Deeper);
            }
            Reach::Explored => self.set(pc, edge.taken()),
            // A back edge: a loop, whose end is checked by exploration.
            _ if self.callees.caller.capabilities.allow(Capabilities::BPF) => {}
            Reach::Discovered | Reach::Fallthrough | Reach::Branch => {
                reject!(EINVAL, "back-edge from insn {pc} to {target}");
            }
        }
        Ok(Step::Done)
    }

    /// Marks `to` as reachable from elsewhere: by a jump, or as a return address.
    fn mark_arrival(&mut self, to: i64) {
        self.mark_at(to, |info| {
            info.prune_point = true;
            info.jmp_point = true;
        });
    }

    /// Marks `to` as a target of a jump or a call.
    fn mark_target(&mut self, to: i64) {
        self.mark_at(to, |info| info.jump_target = true);
    }

    fn mark(&mut self, pc: Pc, with: impl FnOnce(&mut InsnInfo)) {
        self.mark_at(i64::from(pc.0), with);
    }

    fn mark_at(&mut self, to: i64, with: impl FnOnce(&mut InsnInfo)) {
        let at = usize::try_from(to).ok();
        if let Some(info) = at.and_then(|at| self.insns.get_mut(at)) {
            with(info);
        }
    }

    fn check_all_reached(&self) -> VerifyResult {
        let mut slots = (0..).map(Pc).zip(self.slots);
        while let Some((pc, &slot)) = slots.next() {
            if self.reached(pc) != Reach::Explored {
                let text = format!("unreachable insn {pc}");
                return Err(Reject::new(Errno::EINVAL, text).at(pc));
            }
            if slot.is_wide()
                && let Some((second, _)) = slots.next()
                && self.reached(second) != Reach::Unseen
            {
                let text = format!("jump into the middle of ldimm64 insn {pc}");
                return Err(Reject::new(Errno::EINVAL, text).at(pc));
            }
        }
        Ok(())
    }

    fn reached(&self, pc: Pc) -> Reach {
        self.reach.get(pc.index()).copied().unwrap_or(Reach::Unseen)
    }

    fn set(&mut self, pc: Pc, reach: Reach) {
        if let Some(slot) = self.reach.get_mut(pc.index()) {
            *slot = reach;
        }
    }
}
