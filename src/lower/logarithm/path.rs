//! The execution of operations for one position of the input's highest bit.

use rustc_hash::FxHashSet;

use super::found::Input;
use crate::isa::{AluOp, JumpOp, Operand, Reg, RegSet, Width, low32, sign_extend32};
use crate::lower::lowered::Lowered;
use crate::lower::op::{Op, Target};

/// The most operations of a path.
pub(super) const MOST: usize = 160;

/// What a register has, where the highest bit of the input is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Unknown,
    Constant(u64),
    /// The input in the low half, and an unknown upper half.
    Low,
    /// The number of which the input is the quotient.
    Dividend,
    /// `input >> right << left`: more than one bit, and no bit is lost at the left.
    Part {
        right: u8,
        left: u8,
    },
}

impl Value {
    /// The number, if it is constant.
    pub(super) const fn number(self) -> Option<u64> {
        match self {
            Self::Constant(number) => Some(number),
            Self::Unknown | Self::Low | Self::Dividend | Self::Part { .. } => None,
        }
    }
}

/// The execution for one position of the input's highest bit.
#[derive(Debug, Clone)]
pub(super) struct Path {
    at: Target,
    /// The position; none if the input is 0.
    top: Option<u8>,
    input: Input,
    pub(super) regs: [Value; Reg::COUNT],
    pub(super) written: RegSet,
}

impl Path {
    pub(super) fn new(start: Target, input: Input, top: Option<u8>) -> Self {
        let mut path = Self {
            at: start,
            top,
            input,
            regs: [Value::Unknown; Reg::COUNT],
            written: RegSet::EMPTY,
        };
        path.regs[input.src.index()] = match (input.divisor, input.width) {
            (Some(_), _) => Value::Dividend,
            (None, Width::W64) => path.part(0, 0),
            (None, Width::W32) => Value::Low,
        };
        path
    }

    /// The operations that the path executes, and the one before which it stops.
    pub(super) fn trace(mut self, program: &Lowered) -> Option<Vec<Target>> {
        let mut trace = vec![self.at];
        while self.step(program).is_some() {
            trace.push(self.at);
            if trace.len() > MOST {
                return None;
            }
        }
        Some(trace)
    }

    /// Executes operations up to this one, and adds them to those visited.
    pub(super) fn advance(
        &mut self,
        program: &Lowered,
        end: Target,
        visited: &mut FxHashSet<Target>,
    ) -> Option<()> {
        for _ in 0..MOST {
            if self.at == end {
                return Some(());
            }
            visited.insert(self.at);
            self.step(program)?;
        }
        None
    }

    /// Executes an operation; none if it has other effects, or is a branch that is not decided.
    fn step(&mut self, program: &Lowered) -> Option<()> {
        let at = self.at as usize;
        let (op, effect) = (*program.ops.get(at)?, program.effects.get(at)?);
        let mut next = self.at + 1;
        match op {
            Op::LoadImm { dst, value } => self.regs[dst.index()] = Value::Constant(value),
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => self.regs[dst.index()] = self.alu(op, width, dst, src),
            Op::Neg { dst, .. } | Op::Endian { dst, .. } | Op::MovSx { dst, .. } => {
                self.regs[dst.index()] = Value::Unknown;
            }
            Op::Jump { target } => next = target,
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                let left = self.range(self.read(dst.into(), width))?;
                let right = self.range(self.read(src, width))?;
                if holds(op, width, left, right)? {
                    next = target;
                }
            }
            _ => return None,
        }
        self.written = self.written.union(effect.writes);
        self.at = next;
        Some(())
    }

    /// An operand of this width, zero-extended.
    fn read(&self, operand: Operand, width: Width) -> Value {
        let value = match operand {
            Operand::Imm(imm) => Value::Constant(sign_extend32(imm)),
            Operand::Reg(reg) => self.regs[reg.index()],
        };
        match (width, value) {
            (Width::W64, Value::Low) => Value::Unknown,
            (Width::W64, value) => value,
            (Width::W32, Value::Constant(number)) => Value::Constant(low32(number).into()),
            (Width::W32, Value::Low) => self.part(0, 0),
            (Width::W32, Value::Part { right, left }) if self.highest(right, left) < 32 => value,
            (Width::W32, _) => Value::Unknown,
        }
    }

    /// The position of the highest bit of a part that has bits.
    fn highest(&self, right: u8, left: u8) -> u8 {
        (self.top.unwrap_or(0) + left).saturating_sub(right)
    }

    /// The input shifted right, then left.
    pub(super) fn part(&self, right: u8, left: u8) -> Value {
        match self.top {
            Some(top) if top > right => match top - right + left {
                0..64 => Value::Part { right, left },
                _ => Value::Unknown,
            },
            Some(top) if top == right && left < 64 => Value::Constant(1 << left),
            Some(top) if top == right => Value::Unknown,
            _ => Value::Constant(0),
        }
    }

    fn alu(&self, op: AluOp, width: Width, dst: Reg, src: Operand) -> Value {
        let right = self.read(src, width);
        match (op, width, src) {
            (AluOp::Mov, Width::W64, Operand::Reg(src)) => return self.regs[src.index()],
            (AluOp::Mov, ..) => return right,
            _ => {}
        }
        let Value::Constant(number) = right else {
            return Value::Unknown;
        };
        let bits = width.bits();
        // The distance of a shift, less than the width.
        let by = u8::try_from(number % u64::from(bits)).unwrap_or(0);
        match (self.regs[dst.index()], op, width) {
            // The unknown upper half is shifted out.
            (Value::Low, AluOp::Lsh, Width::W64) if by >= 32 => return self.part(0, by),
            (Value::Dividend, AluOp::Div, Width::W64) if self.is_divisor(number) => {
                return self.part(0, 0);
            }
            _ => {}
        }
        match self.read(dst.into(), width) {
            Value::Constant(left) => Value::Constant(op.eval(width, left, number)),
            Value::Part { right, left } => {
                let highest = self.highest(right, left);
                match op {
                    AluOp::Lsh if highest + by < bits => self.part(right, left + by),
                    AluOp::Arsh if highest + 1 == bits => Value::Unknown,
                    AluOp::Rsh | AluOp::Arsh if by <= left => self.part(right, left - by),
                    AluOp::Rsh | AluOp::Arsh => self.part(right + (by - left), 0),
                    _ => Value::Unknown,
                }
            }
            Value::Unknown | Value::Low | Value::Dividend => Value::Unknown,
        }
    }

    fn is_divisor(&self, number: u64) -> bool {
        let divisor = self.input.divisor.map(|it| it.unsigned_abs().into());
        divisor == Some(number)
    }

    /// The least and the greatest number that a value may be.
    fn range(&self, value: Value) -> Option<(u64, u64)> {
        match value {
            Value::Unknown | Value::Low => None,
            Value::Constant(number) => Some((number, number)),
            Value::Dividend => {
                let divisor = self.input.divisor?.unsigned_abs();
                let multiple = |power: u32| u128::from(divisor) << power;
                let (least, next) = match self.top {
                    None => (0, multiple(0)),
                    Some(top) => (multiple(top.into()), multiple(u32::from(top) + 1)),
                };
                // There is such a dividend, and it is at most the greatest number.
                let greatest = u64::try_from(next - 1).unwrap_or(u64::MAX);
                Some((u64::try_from(least).ok()?, greatest))
            }
            Value::Part { right, left } => {
                let least = 1 << (self.highest(right, left) - left);
                let greatest = least | (least - 1);
                Some((least << left, greatest << left))
            }
        }
    }
}

/// Whether a condition holds for all numbers of two ranges, or for none.
fn holds(op: JumpOp, width: Width, left: (u64, u64), right: (u64, u64)) -> Option<bool> {
    let both = |at_least: bool, at_most: bool| match (at_least, at_most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let sign = 1 << (width.bits() - 1);
    let is_signed = left.1 >= sign || right.1 >= sign;
    match op {
        _ if left.0 == left.1 && right.0 == right.1 => Some(op.eval(width, left.0, right.0)),
        JumpOp::Eq => both(false, left.1 < right.0 || right.1 < left.0),
        JumpOp::Ne => both(left.1 < right.0 || right.1 < left.0, false),
        JumpOp::Set => None,
        JumpOp::Sgt | JumpOp::Sge | JumpOp::Slt | JumpOp::Sle if is_signed => None,
        JumpOp::Gt | JumpOp::Sgt => both(left.0 > right.1, left.1 <= right.0),
        JumpOp::Ge | JumpOp::Sge => both(left.0 >= right.1, left.1 < right.0),
        JumpOp::Lt | JumpOp::Slt => both(left.1 < right.0, left.0 >= right.1),
        JumpOp::Le | JumpOp::Sle => both(left.1 <= right.0, left.0 > right.1),
    }
}
