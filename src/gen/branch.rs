//! Steps with control flow: branches, joins, loops.

use super::body::{Body, Open};
use super::code::Label;
use super::setting::Role;
use super::state::{Holds, Slot, State};
use crate::isa::{AluOp, Insn, JumpOp, Operand, Reg, RegSet, Width};

/// The most open forward jumps.
const MOST_OPEN: usize = 4;
/// The most nested loops.
const MOST_LOOPS: usize = 2;
/// Registers that count loops.
const COUNTERS: RegSet = RegSet::of(&[Reg::R7, Reg::R8, Reg::R9]);

impl Body<'_> {
    /// A conditional forward jump; records the state for its target.
    pub(super) fn open_jump(&mut self, op: JumpOp, width: Width, dst: Reg, src: Operand) {
        let to = self.code.label();
        let off = 0;
        let insn = Insn::JumpIf {
            op,
            width,
            dst,
            src,
            off,
        };
        self.code.aim(insn, to);
        let state = self.state.clone();
        self.open.push(Open { to, state });
    }

    /// A jump to a label, of one form or the other.
    fn jump(&mut self, to: Label) {
        let insn = if self.choices.chance(30) {
            Insn::JumpLong { off: 0 }
        } else {
            Insn::Jump { off: 0 }
        };
        self.code.aim(insn, to);
    }

    /// Places the targets of all open jumps from `from` on here.
    pub(super) fn close_all(&mut self, from: usize) {
        for open in self.open.drain(from..) {
            self.code.bind(open.to);
            self.state.join(&open.state);
        }
    }

    /// Returns a constant from the function. The following code is reached by jumps only,
    /// so its state does not change.
    pub(super) fn leave(&mut self) {
        self.throw();
        let imm = self.choices.imm();
        let imm = self.returnable().map_or(imm, |most| imm & most);
        self.alu(AluOp::Mov, Width::W64, Reg::R0, Operand::Imm(imm));
        self.code.emit(Insn::Exit);
    }

    /// Throws an exception at times, after which nothing is executed. Callers hold references, so
    /// only the main function does, but for mistakes.
    fn throw(&mut self) {
        let setting = self.setting;
        let Some(throw) = setting.throw.filter(|_| self.choices.chance(30)) else {
            return;
        };
        if self.is_main() || self.slips() {
            // The cookie is what the program returns.
            let imm = self.choices.imm();
            self.mov_imm(Reg::R1, setting.returnable().map_or(imm, |bits| imm & bits));
            self.call_kernel(throw, Holds::Nothing);
        }
    }

    /// Steps during which these registers are not overwritten, and after which all their
    /// jumps end.
    pub(super) fn within(&mut self, pinned: RegSet, steps: usize) {
        let (before, base) = (self.pinned, self.base);
        self.pinned = before.union(pinned);
        self.base = self.open.len();
        for _ in 0..steps {
            self.step();
        }
        self.close_all(self.base);
        self.base = base;
        self.pinned = before;
    }

    /// The body of a loop, which begins with the state `before` in each round.
    pub(super) fn rounds(&mut self, pinned: RegSet, before: &State) {
        let pointers = |holds| !matches!(holds, Holds::Nothing | Holds::Number);
        let steps = 1 + self.choices.below(5);
        self.loops += 1;
        self.within(pinned.union(before.with(pointers)), steps);
        self.loops -= 1;
        // The next round begins with the same state as the first.
        for reg in before.with(|holds| holds == Holds::Number).iter() {
            if self.state.get(reg) != Holds::Number {
                let imm = self.choices.imm();
                self.mov_imm(reg, imm);
            }
        }
    }

    /// Whether the function may return here.
    pub(super) const fn may_leave(&self) -> bool {
        self.held == 0
    }
}

/// A branch over the following steps, until [`close`].
pub(super) fn branch(body: &mut Body<'_>) {
    if body.open.len() - body.base >= MOST_OPEN {
        return close(body);
    }
    let (op, width) = (
        body.choices.pick(JumpOp::ALL),
        body.choices.pick(Width::ALL),
    );
    let dst = body.number();
    let src = if body.choices.chance(50) {
        Operand::Reg(body.number())
    } else {
        Operand::Imm(body.choices.imm())
    };
    body.open_jump(op, width, dst, src);
}

/// Places the target of an open jump here. The path that did not jump joins it, skips the
/// following steps, or returns.
pub(super) fn close(body: &mut Body<'_>) {
    if body.open.len() <= body.base {
        return;
    }
    let open = body.open.len() - body.base;
    let at = body.base + body.choices.below(open);
    let Open { to, state } = body.open.remove(at);
    match body.choices.below(4) {
        1 => {
            let end = body.code.label();
            body.jump(end);
            let state = std::mem::replace(&mut body.state, state);
            body.code.bind(to);
            body.open.push(Open { to: end, state });
        }
        2 if body.may_leave() => {
            body.leave();
            body.code.bind(to);
            body.state = state;
        }
        _ => {
            body.code.bind(to);
            body.state.join(&state);
        }
    }
}

/// A jump to the next instruction.
pub(super) fn nowhere(body: &mut Body<'_>) {
    let next = body.code.label();
    body.jump(next);
    body.code.bind(next);
}

/// A loop of a few rounds, counted by a register or ended by `may_goto`.
pub(super) fn count(body: &mut Body<'_>) {
    if body.loops >= MOST_LOOPS {
        return;
    }
    let Some(counter) = body.one_of(COUNTERS.minus(body.pinned)) else {
        return;
    };
    let rounds = 1 + body.choices.below(if body.loops == 0 { 9 } else { 4 });
    // The verifier explores a callback round by round until its state stops changing, which
    // a loop in it can make long.
    if body.function().role != Role::Main && body.loops > 0 {
        return;
    }
    body.mov_imm(counter, 0);
    body.state.set(counter, Holds::Number);
    forget_what_may_change(body);
    let before = body.state.clone();
    let head = body.code.here();
    let ends_early = body.choices.chance(30).then(|| body.code.label());
    if let Some(out) = ends_early {
        body.code.aim(Insn::MayGoto { off: 0 }, out);
    }
    body.rounds(RegSet::of(&[counter]), &before);
    body.add_imm(counter, 1);
    let op = body.choices.pick(&[JumpOp::Lt, JumpOp::Ne, JumpOp::Slt]);
    let width = body.choices.pick(Width::ALL);
    let again = Insn::JumpIf {
        op,
        width,
        dst: counter,
        src: Operand::Imm(i32::try_from(rounds).unwrap_or(1)),
        off: 0,
    };
    body.code.aim(again, head);
    if let Some(out) = ends_early {
        body.code.bind(out);
        body.state.join(&before);
    }
}

/// Removes from the state what the body of a loop might change.
pub(super) fn forget_what_may_change(body: &mut Body<'_>) {
    for reg in Reg::ALL {
        let holds = body.state.get(reg);
        let lost = RegSet::CALLER_SAVED.contains(reg) && holds != Holds::Number;
        if lost || holds.maybe().is_some() {
            body.state.set(reg, Holds::Nothing);
        }
    }
    for slot in &mut body.state.slots {
        if let Slot::Spilled(_) = slot {
            *slot = Slot::Mixed(0);
        }
    }
}

/// Makes a number small and positive, so that it can count or index.
pub(super) fn mask(body: &mut Body<'_>, reg: Reg, mask: i32) {
    let width = body.choices.pick(Width::ALL);
    body.alu(AluOp::And, width, reg, Operand::Imm(mask));
}
