//! The origin of a value: follows the path to the fault backwards.
//!
//! A register's value is followed through copies, spills, fills, arithmetic, and into and
//! out of subprograms, to the instruction that made it. Stack writes through registers
//! other than the frame pointer are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::isa::{AluOp, CallTarget, Code, Insn, JumpOp, Operand, Reg, Size, Width};
use crate::program::Program;
use crate::spec::helpers::{self, Effects};
use crate::util::{HelperId, Pc};

/// The effect of an instruction on a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) enum Step {
    /// Made the value.
    Made,
    /// Changed the value.
    Changed,
    /// Copied the value from this register.
    Copied(Reg),
    /// Spilled the value to the stack.
    Spilled,
    /// Filled the value from the stack.
    Filled,
    /// A call returned the value.
    Returned,
    /// A call clobbered the register.
    Lost,
}

/// The history of a value, newest step first. The last step made it, unless the path begins
/// later or the value is an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::verifier) struct History(pub Vec<(Pc, Step)>);

impl History {
    /// The instruction that made the value.
    pub fn made(&self) -> Option<(Pc, Step)> {
        let last = self.0.last().copied()?;
        matches!(last.1, Step::Made | Step::Returned | Step::Lost).then_some(last)
    }
}

/// A comparison on the path, of a pointer with the same variable parts as the one at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) struct Compared {
    /// The conditional jump.
    pub pc: Pc,
    /// Where the pointer was made, or the last number was added that is not constant.
    pub base: Pc,
    /// What holds on the path: pointer `op` the other value.
    pub op: JumpOp,
    /// The constant by which the compared pointer is ahead of the pointer at fault.
    pub ahead: i64,
}

/// The path to a fault.
pub(in crate::verifier) struct Path<'p> {
    program: &'p Program,
    code: Arc<Code>,
    steps: Vec<Pc>,
}

/// A location that is followed backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) enum Location {
    /// A register.
    Reg(Reg),
    /// Eight bytes of the frame, by offset from the frame pointer.
    Slot(i16),
}

impl<'p> Path<'p> {
    /// The recorded path; without one, the straight-line code before the fault.
    pub fn new(program: &'p Program, noted: Option<&[Pc]>, fault: Pc) -> Self {
        Self::with_code(program, Arc::new(Code::new(&program.insns)), noted, fault)
    }

    /// The same with the program's decoded instructions.
    pub fn with_code(
        program: &'p Program,
        code: Arc<Code>,
        noted: Option<&[Pc]>,
        fault: Pc,
    ) -> Self {
        let mut steps = noted.unwrap_or_default().to_vec();
        if steps.last() != Some(&fault) {
            steps = straight(&code, program, fault);
        }
        Self {
            program,
            code,
            steps,
        }
    }

    /// The instruction before the fault on the path.
    pub fn before_fault(&self) -> Option<Pc> {
        self.steps.iter().rev().nth(1).copied()
    }

    /// The index of an instruction's last occurrence on the path.
    pub fn index_of(&self, pc: Pc) -> Option<usize> {
        self.steps.iter().rposition(|step| *step == pc)
    }

    /// The instruction at `pc`.
    pub fn insn(&self, pc: Pc) -> Option<Insn> {
        self.code.insn(pc)
    }

    /// The history of a register's value before the fault.
    pub fn history(&self, reg: Reg) -> History {
        self.history_before(self.steps.len().saturating_sub(1), reg)
    }

    /// The history of a register's value before a step.
    fn history_before(&self, step: usize, reg: Reg) -> History {
        let mut history = Vec::new();
        self.trace(step, Location::Reg(reg), |at, step| {
            history.extend(self.steps.get(at).map(|pc| (*pc, step)));
            true
        });
        History(history)
    }

    /// The step of the path that made the value of a location before `step`, or the first known
    /// one that had it.
    pub fn origin(&self, step: usize, location: Location) -> Option<(usize, Pc)> {
        let mut first = None;
        self.trace(step, location, |at, _| {
            first = Some(at);
            true
        });
        let first = first?;
        Some((first, *self.steps.get(first)?))
    }

    /// Visits the history of a location's value before a step, with the index of each step,
    /// until `visit` returns false.
    fn trace(
        &self,
        step: usize,
        mut location: Location,
        mut visit: impl FnMut(usize, Step) -> bool,
    ) {
        // The number of returned subprograms that are being skipped; the fault's own isn't
        // counted.
        let mut passing = 0_usize;
        let before = self.steps.get(..step).unwrap_or_default();
        for (at, &pc) in before.iter().enumerate().rev() {
            let Some(insn) = self.insn(pc) else { break };
            let into = self.enters_subprogram(at, &insn);
            if matches!(insn, Insn::Exit) {
                // R0 comes from the callee; everything else from before the call.
                passing = match (passing, location) {
                    (0, Location::Reg(Reg::R0)) => continue,
                    (passing, _) => passing + 1,
                };
                continue;
            }
            if passing > 0 {
                if into {
                    passing -= 1;
                }
                if passing > 0 || !into {
                    continue;
                }
            } else if into {
                // The fault is in the callee: arguments come from the caller.
                match location {
                    Location::Reg(reg) if (1..=5).contains(&reg.number()) => continue,
                    _ => break,
                }
            }
            match self.step(&insn, location) {
                None => {}
                Some((step, next)) => {
                    if !visit(at, step) {
                        break;
                    }
                    match next {
                        Some(next) => location = next,
                        None => break,
                    }
                }
            }
        }
    }

    /// Where a pointer was made, or a number that is not constant was added to it: the index of
    /// the step, and the constant added since. None: before the path.
    fn base(&self, step: usize, reg: Reg) -> (Option<usize>, i64) {
        let (mut made, mut added) = (None, 0_i64);
        self.trace(step, Location::Reg(reg), |at, step| {
            let insn = self.steps.get(at).and_then(|pc| self.insn(*pc));
            match (step, insn) {
                (Step::Copied(_) | Step::Spilled | Step::Filled, _) => true,
                (
                    Step::Changed,
                    Some(Insn::Alu {
                        op: AluOp::Add,
                        width: Width::W64,
                        src: Operand::Imm(by),
                        ..
                    }),
                ) => {
                    added = added.wrapping_add(i64::from(by));
                    true
                }
                _ => {
                    made = Some(at);
                    false
                }
            }
        });
        (made, added)
    }

    /// The last comparison of the pointer at fault with another value that was loaded, as for
    /// the packet's end: of several, the one that reaches furthest. Comparisons of a pointer to
    /// which another number was added don't count.
    pub fn compared(&self, pointer: Reg) -> Option<Compared> {
        let fault = self.steps.len().checked_sub(1)?;
        let (base, own) = self.base(fault, pointer);
        let base = base?;
        let base_pc = *self.steps.get(base)?;
        let origin = |step, reg| {
            let mut first = None;
            self.trace(step, Location::Reg(reg), |at, step| {
                first = Some((at, step));
                true
            });
            first
        };
        let packet = origin(fault, pointer);
        let is_loaded = |step: usize| {
            let insn = self.steps.get(step).and_then(|pc| self.insn(*pc));
            matches!(insn, Some(Insn::Load { .. }))
        };
        let mut furthest: Option<Compared> = None;
        let pairs = self.steps.iter().zip(self.steps.iter().skip(1));
        for (at, (&pc, next)) in pairs.enumerate().skip(base) {
            let Some(insn) = self.insn(pc) else { continue };
            let Insn::JumpIf {
                op,
                dst,
                src: Operand::Reg(src),
                ..
            } = insn
            else {
                continue;
            };
            let taken = insn.jump_target(pc) == Some(i64::from(next.0));
            let Some(holds) = (if taken { Some(op) } else { op.negated() }) else {
                continue;
            };
            for (op, pointer, end) in [(holds, dst, src), (holds.swapped(), src, dst)] {
                let (same, added) = self.base(at, pointer);
                if same != Some(base) {
                    continue;
                }
                let other = origin(at, end);
                // Of a path that begins later, it may have been loaded before.
                if other == packet || !other.is_none_or(|(step, _)| is_loaded(step)) {
                    continue;
                }
                let ahead = added.wrapping_sub(own);
                if furthest.is_none_or(|known| known.ahead <= ahead) {
                    furthest = Some(Compared {
                        pc,
                        base: base_pc,
                        op,
                        ahead,
                    });
                }
            }
        }
        furthest
    }

    /// The load of less than eight bytes that made a value.
    pub fn narrow_load(&self, reg: Reg) -> Option<Pc> {
        let (pc, step) = self.history(reg).made()?;
        let insn = self.insn(pc)?;
        let narrow = matches!(insn, Insn::Load { size, .. } if size != Size::Dw);
        (step == Step::Made && narrow).then_some(pc)
    }

    /// The fill of a value from a stack slot that nothing on the whole path wrote.
    pub fn unwritten(&self, reg: Reg) -> Option<Pc> {
        let history = self.history(reg);
        let &(pc, step) = history.0.last()?;
        let whole = self.steps.first() == Some(&Pc(0)) && self.steps.len() > 1;
        (step == Step::Filled && whole).then_some(pc)
    }

    /// Whether the step is a call and the next step is in its subprogram.
    fn enters_subprogram(&self, at: usize, insn: &Insn) -> bool {
        let target = self
            .steps
            .get(at)
            .and_then(|pc| insn.subprogram_target(*pc));
        insn.is_call()
            && target.is_some()
            && self.steps.get(at + 1).map(|next| i64::from(next.0)) == target
    }

    /// The effect of an instruction on a location, and the location of the value before.
    fn step(&self, insn: &Insn, location: Location) -> Option<(Step, Option<Location>)> {
        match (location, *insn) {
            (
                Location::Slot(slot),
                Insn::Store {
                    size: Size::Dw,
                    base: Reg::R10,
                    off,
                    src,
                },
            ) if off == slot => Some(match src {
                Operand::Reg(src) => (Step::Spilled, Some(Location::Reg(src))),
                Operand::Imm(_) => (Step::Made, None),
            }),
            (Location::Slot(_), _) => None,
            (Location::Reg(reg), insn) if insn.writes().contains(reg) => Some(match insn {
                Insn::Alu {
                    op: AluOp::Mov,
                    src: Operand::Reg(src),
                    ..
                } => (Step::Copied(src), Some(Location::Reg(src))),
                Insn::Alu { op, dst, .. } if op != AluOp::Mov => {
                    (Step::Changed, Some(Location::Reg(dst)))
                }
                Insn::Load {
                    size: Size::Dw,
                    base: Reg::R10,
                    off,
                    ..
                } => (Step::Filled, Some(Location::Slot(off))),
                Insn::Call(_) | Insn::CallReg { .. } if reg == Reg::R0 => (Step::Returned, None),
                Insn::Call(_) | Insn::CallReg { .. } => (Step::Lost, None),
                _ => (Step::Made, None),
            }),
            _ => None,
        }
    }

    /// The call that invalidated a pointer: it released the reference or moved the packet.
    pub fn invalidated(&self, reg: Reg) -> Option<(Pc, HelperId)> {
        let of_fault = self.history(reg);
        let made = of_fault.made().map(|(pc, _)| pc);
        let before = self
            .steps
            .split_last()
            .map_or(&[][..], |(_, before)| before);
        for (at, &pc) in before.iter().enumerate().rev() {
            if Some(pc) == made {
                return None;
            }
            let Some(Insn::Call(CallTarget::Helper(id))) = self.insn(pc) else {
                continue;
            };
            let Some(helper) = helpers::helper(id) else {
                continue;
            };
            let releases = helper.prototypes.iter().any(helpers::Prototype::releases);
            let released = || {
                let argument = self.history_before(at, Reg::R1);
                made.is_some() && argument.made().map(|(pc, _)| pc) == made
            };
            if helper.effects.contains(Effects::CHANGES_PACKET) || (releases && released()) {
                return Some((pc, id));
            }
        }
        None
    }

    /// The call of this helper that begins a section which is still open.
    pub fn open_section(&self, name: &str) -> Option<Pc> {
        let calls = self.steps.iter().rev().skip(1);
        let mut calls = calls.filter(|pc| self.callee(**pc).as_deref() == Some(name));
        calls.next().copied()
    }

    /// The last call of a helper with a callback.
    pub fn calls_back(&self) -> Option<Pc> {
        let mut steps = self.steps.iter().rev().copied();
        steps.find(|pc| {
            let Some(Insn::Call(CallTarget::Helper(id))) = self.insn(*pc) else {
                return false;
            };
            helpers::helper(id).is_some_and(|it| it.effects.contains(Effects::CALLS_BACK))
        })
    }

    /// The factor of the index that was last added to a pointer in a register.
    pub fn scale(&self, pointer: Reg) -> Option<u64> {
        let history = self.history(pointer);
        let changes = history.0.iter();
        let mut sums = changes.filter_map(|(pc, step)| match (step, self.insn(*pc)?) {
            (
                Step::Changed,
                Insn::Alu {
                    op: AluOp::Add,
                    src: Operand::Reg(index),
                    ..
                },
            ) => Some((*pc, index)),
            _ => None,
        });
        let (pc, index) = sums.next()?;
        let index = self.history_before(self.index_of(pc)?, index);
        let mut changes = index.0.iter().filter(|(_, step)| *step == Step::Changed);
        match self.insn(changes.next()?.0)? {
            Insn::Alu {
                op: AluOp::Lsh,
                src: Operand::Imm(by),
                ..
            } => 1_u64.checked_shl(by.try_into().ok()?),
            Insn::Alu {
                op: AluOp::Mul,
                src: Operand::Imm(by),
                ..
            } => by.try_into().ok(),
            _ => None,
        }
    }

    /// The loop with the most iterations on the path: its first instruction and its back
    /// edge.
    pub fn longest_loop(&self) -> Option<(Pc, Pc)> {
        let pairs = || self.steps.iter().zip(self.steps.iter().skip(1));
        let backward = |from: Pc, to: Pc| {
            let insn = self.insn(from);
            to <= from && insn.is_some_and(|insn| insn.jump_target(from) == Some(to.0.into()))
        };
        let mut rounds: BTreeMap<(Pc, Pc), usize> = BTreeMap::new();
        for (from, to) in pairs().filter(|(from, to)| backward(**from, **to)) {
            *rounds.entry((*to, *from)).or_default() += 1;
        }
        let entries = |first: Pc, last: Pc| {
            let arrivals =
                pairs().filter(|(from, to)| **to == first && !(first..=last).contains(*from));
            arrivals.count().max(1)
        };
        let rounds = rounds.into_iter();
        let longest = rounds.max_by_key(|((first, last), rounds)| rounds / entries(*first, *last));
        longest.map(|(ends, _)| ends)
    }

    /// The conditional jumps since an instruction of the path, and whether each was taken.
    pub fn branches_since(&self, pc: Pc) -> Vec<(Pc, bool)> {
        let from = self.steps.iter().rposition(|step| *step == pc).unwrap_or(0);
        let steps = self.steps.get(from..).unwrap_or_default();
        let pairs = steps.iter().zip(steps.iter().skip(1));
        pairs
            .filter_map(|(pc, next)| {
                let insn = self.insn(*pc)?;
                matches!(insn, Insn::JumpIf { .. }).then(|| {
                    let taken = insn.jump_target(*pc) == Some(i64::from(next.0));
                    (*pc, taken)
                })
            })
            .collect()
    }

    /// The first instruction of the program's function that an instruction calls.
    pub fn called_function(&self, pc: Pc) -> Option<Pc> {
        let target = self.insn(pc)?.subprogram_target(pc)?;
        u32::try_from(target).ok().map(Pc)
    }

    /// The name of the helper or function that an instruction calls.
    pub fn callee(&self, pc: Pc) -> Option<String> {
        use crate::isa::Names;
        match self.insn(pc)? {
            Insn::Call(CallTarget::Helper(id)) => Some(self.program.helper(id)?.into_owned()),
            Insn::Call(CallTarget::Kfunc { id, fd_index }) => {
                Some(self.program.kfunc(id, fd_index)?.into_owned())
            }
            insn @ Insn::Call(CallTarget::Subprogram { .. }) => {
                let target = u32::try_from(insn.subprogram_target(pc)?).ok()?;
                Some(self.program.subprogram(Pc(target))?.name.clone())
            }
            _ => None,
        }
    }
}

/// The instructions of the basic block up to and including an instruction.
fn straight(code: &Code, program: &Program, fault: Pc) -> Vec<Pc> {
    let function = program.subprogram(fault).map_or(Pc(0), |sub| sub.start);
    let mut targets: Vec<i64> = Vec::new();
    let mut pcs = Vec::new();
    for (pc, insn) in code.iter() {
        if let Ok(insn) = insn {
            targets.extend(insn.jump_target(pc));
        }
        if (function..=fault).contains(&pc) {
            pcs.push(pc);
        }
    }
    let mut block = Vec::new();
    for &pc in pcs.iter().rev() {
        let leaves = code.insn(pc).is_none_or(|insn| !insn.falls_through());
        if pc != fault && leaves {
            break;
        }
        block.push(pc);
        if targets.contains(&i64::from(pc.0)) {
            break;
        }
    }
    block.reverse();
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::spec::ProgType;

    fn program(text: &str) -> Program {
        let insns = assemble(text).unwrap();
        Program::new("p", ProgType::Xdp, insns)
    }

    fn pcs(numbers: impl IntoIterator<Item = u32>) -> Vec<Pc> {
        numbers.into_iter().map(Pc).collect()
    }

    #[test]
    fn a_value_is_followed_through_the_stack() {
        let program = program(
            "r6 = *(u32 *)(r1 + 4)
             r6 += 2
             *(u64 *)(r10 - 8) = r6
             r6 = 0
             r2 = *(u64 *)(r10 - 8)
             r0 = *(u8 *)(r2 + 0)
             exit",
        );
        let path = Path::new(&program, Some(&pcs(0..=5)), Pc(5));
        assert_eq!(
            path.history(Reg::R2).0,
            [
                (Pc(4), Step::Filled),
                (Pc(2), Step::Spilled),
                (Pc(1), Step::Changed),
                (Pc(0), Step::Made)
            ]
        );
        // The same without a path: there are no jumps.
        let path = Path::new(&program, None, Pc(5));
        assert_eq!(path.history(Reg::R2).made(), Some((Pc(0), Step::Made)));
        assert_eq!(path.history(Reg::R1).made(), None);
    }

    #[test]
    fn calls_return_and_lose() {
        let program = program(
            "r2 = 7
             call 5
             r1 = r0
             r0 = r2
             exit",
        );
        let path = Path::new(&program, Some(&pcs(0..=3)), Pc(3));
        assert_eq!(path.history(Reg::R2).made(), Some((Pc(1), Step::Lost)));
        assert_eq!(
            path.history(Reg::R1).0,
            [(Pc(2), Step::Copied(Reg::R0)), (Pc(1), Step::Returned)]
        );
        assert_eq!(path.callee(Pc(1)).as_deref(), Some("bpf_ktime_get_ns"));
    }

    #[test]
    fn without_a_path_only_the_block_is_sure() {
        let program = program(
            "r0 = 1
             if r1 == 0 goto +1
             r0 = 2
             r0 += 1
             exit",
        );
        let path = Path::new(&program, None, Pc(3));
        assert_eq!(path.history(Reg::R0), History::default());
        let path = Path::new(&program, Some(&pcs([0, 1, 3])), Pc(3));
        assert_eq!(path.history(Reg::R0).made(), Some((Pc(0), Step::Made)));
        assert_eq!(path.branches_since(Pc(0)), [(Pc(1), true)]);
    }

    #[test]
    fn the_comparison_with_the_end_is_found() {
        let program = program(
            "r2 = *(u32 *)(r1 + 0)
             r3 = *(u32 *)(r1 + 4)
             r4 = r2
             r4 += 14
             if r4 > r3 goto +1
             r0 = *(u8 *)(r2 + 20)
             exit",
        );
        let path = Path::new(&program, Some(&pcs(0..=5)), Pc(5));
        let found = Compared {
            pc: Pc(4),
            base: Pc(0),
            op: JumpOp::Le,
            ahead: 14,
        };
        assert_eq!(path.compared(Reg::R2), Some(found));
    }
}
