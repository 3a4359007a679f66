//! A function being generated: its steps, and their common state.

use super::choices::Choices;
use super::code::{Code, Label};
use super::setting::{Function, Role, Setting};
use super::state::{Holds, SLOTS, State};
use crate::isa::{AluOp, CallTarget, Insn, Operand, Reg, RegSet, Size, Width};
use crate::util::HelperId;

/// A forward jump whose target is not placed yet, and the state there.
#[derive(Debug)]
pub(super) struct Open {
    pub to: Label,
    pub state: State,
}

/// A function being generated.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub choices: &'a mut Choices,
    pub code: &'a mut Code,
    pub setting: &'a Setting<'a>,
    /// The number of the function in the setting.
    pub number: usize,
    /// The possible steps.
    pub steps: Steps,
    pub state: State,
    pub open: Vec<Open>,
    /// Jumps below this index end after the current loop or block.
    pub base: usize,
    /// Registers that must not be overwritten.
    pub pinned: RegSet,
    /// The depth of nested loops.
    pub loops: usize,
    /// The number of references that are not released yet.
    pub held: usize,
    /// The number of critical sections around the current step.
    pub sections: usize,
    /// Bytes of the stack that objects take.
    pub room: i16,
    /// The offsets of the dynptrs on the stack.
    pub dynptrs: Vec<i16>,
    /// The last number of a pointer that may be null.
    pub maybes: u16,
    /// The number of results that were dropped because they depend on the machine.
    pub masked: usize,
    /// The functions that are called from here, by number.
    pub called: Vec<usize>,
}

/// The possible steps of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub plain: &'static [Step],
    /// Those with kernel objects, in the main function.
    pub objects: &'static [Step],
}

/// A step and its weight.
pub(super) type Step = (u16, fn(&mut Body<'_>));

impl<'a> Body<'a> {
    pub(super) fn new(
        choices: &'a mut Choices,
        code: &'a mut Code,
        setting: &'a Setting<'a>,
        number: usize,
        steps: Steps,
    ) -> Self {
        let arguments = &setting.functions[number].arguments;
        Self {
            choices,
            code,
            setting,
            number,
            steps,
            state: State::new(arguments),
            open: Vec::new(),
            base: 0,
            pinned: RegSet::EMPTY,
            loops: 0,
            held: 0,
            sections: 0,
            room: 0,
            dynptrs: Vec::new(),
            maybes: 0,
            masked: 0,
            called: Vec::new(),
        }
    }

    /// Generates one step.
    pub(super) fn step(&mut self) {
        let Steps { plain, objects } = self.steps;
        let with_objects = !objects.is_empty() && self.is_main() && self.choices.chance(45);
        let steps = if with_objects { objects } else { plain };
        let total: u16 = steps.iter().map(|step| step.0).sum();
        let mut at = u16::try_from(self.choices.below(usize::from(total))).unwrap_or_default();
        for (weight, step) in steps {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return step(self),
            }
        }
    }

    /// The function itself.
    pub(super) fn function(&self) -> &'a Function {
        &self.setting.functions[self.number]
    }

    /// Whether this is the main function.
    pub(super) fn is_main(&self) -> bool {
        self.function().role == Role::Main
    }

    /// The bits that the function's result may have; `None` for any. (A callback returns 0
    /// to continue and 1 to stop.)
    pub(super) fn returnable(&self) -> Option<i32> {
        match self.function().role {
            Role::Main => self.setting.returnable(),
            role => role.is_callback().then_some(1),
        }
    }

    pub(super) fn alu(&mut self, op: AluOp, width: Width, dst: Reg, src: Operand) {
        self.code.emit(Insn::Alu {
            op,
            width,
            dst,
            src,
        });
    }

    /// A copy, which holds the same.
    pub(super) fn mov(&mut self, dst: Reg, src: Reg) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Reg(src));
        self.state.set(dst, self.state.get(src));
    }

    pub(super) fn mov_imm(&mut self, dst: Reg, imm: i32) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Imm(imm));
        self.state.set(dst, Holds::Number);
    }

    /// An addition to a number; for a pointer, the caller updates the state.
    pub(super) fn add_imm(&mut self, dst: Reg, imm: i32) {
        self.alu(AluOp::Add, Width::W64, dst, Operand::Imm(imm));
        if self.state.get(dst) != Holds::Number {
            self.state.set(dst, Holds::Nothing);
        }
    }

    /// A load; the caller sets the result's state.
    pub(super) fn load(&mut self, size: Size, dst: Reg, base: Reg, off: i16) {
        self.code.emit(Insn::Load {
            size,
            dst,
            base,
            off,
        });
        self.state.set(dst, Holds::Nothing);
    }

    pub(super) fn store(&mut self, size: Size, base: Reg, off: i16, src: Operand) {
        self.code.emit(Insn::Store {
            size,
            base,
            off,
            src,
        });
    }

    /// A pointer into the function's frame.
    pub(super) fn frame_address(&mut self, dst: Reg, off: i16) {
        self.mov(dst, Reg::FP);
        self.add_imm(dst, off.into());
    }

    /// A helper call; the arguments are already in their registers.
    pub(super) fn call(&mut self, helper: HelperId, result: Holds) {
        self.code.emit(Insn::Call(CallTarget::Helper(helper)));
        self.state.after_call(result);
    }

    /// A helper call whose result is dropped if only defined behaviour counts.
    pub(super) fn call_masked(&mut self, helper: HelperId) {
        self.call(helper, Holds::Number);
        if self.setting.options.masks() {
            self.masked += 1;
            self.constant_into(Reg::R0);
        }
    }

    /// A constant number.
    pub(super) fn constant_into(&mut self, dst: Reg) {
        if self.choices.chance(30) {
            let value = self.choices.wide();
            self.code.emit(Insn::LoadImm64 { dst, value });
        } else {
            let width = self.choices.pick(Width::ALL);
            let imm = self.choices.imm();
            self.alu(AluOp::Mov, width, dst, Operand::Imm(imm));
        }
        self.state.set(dst, Holds::Number);
    }

    /// A register that may be overwritten.
    pub(super) fn free(&mut self) -> Reg {
        let all: RegSet = Reg::ALL.into_iter().filter(|reg| *reg != Reg::FP).collect();
        self.one_of(all.minus(self.pinned)).unwrap_or(Reg::R0)
    }

    /// A callee-saved register that may be overwritten, if there is any.
    pub(super) fn free_and_kept(&mut self) -> Option<Reg> {
        let kept = RegSet::of(&[Reg::R6, Reg::R7, Reg::R8, Reg::R9]);
        self.one_of(kept.minus(self.pinned))
    }

    /// A register of a set.
    pub(super) fn one_of(&mut self, set: RegSet) -> Option<Reg> {
        let all: Vec<Reg> = set.iter().collect();
        self.choices.any(&all)
    }

    /// A register with a number.
    pub(super) fn number(&mut self) -> Reg {
        let numbers = self.state.with(|holds| holds == Holds::Number);
        if let Some(reg) = self.one_of(numbers) {
            return reg;
        }
        let reg = self.free();
        self.constant_into(reg);
        reg
    }

    /// A register with a number that may be overwritten.
    pub(super) fn own_number(&mut self) -> Reg {
        let numbers = self.state.with(|holds| holds == Holds::Number);
        if let Some(reg) = self.one_of(numbers.minus(self.pinned)) {
            return reg;
        }
        let reg = self.free();
        self.constant_into(reg);
        reg
    }

    /// A register with the context.
    pub(super) fn context(&mut self) -> Option<Reg> {
        let held = self.state.with(|holds| holds == Holds::Context);
        self.one_of(held)
    }

    /// The offset of slot `number` from the frame pointer.
    pub(super) fn slot_off(number: usize) -> i16 {
        -8 * i16::try_from(number % SLOTS + 1).unwrap_or(1)
    }

    /// A new id for a pointer that may be null.
    pub(super) fn new_maybe(&mut self) -> u16 {
        self.maybes += 1;
        self.maybes
    }
}
