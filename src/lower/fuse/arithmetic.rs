//! Fusing moves, shifts and other arithmetic.
//!
//! The first operations of a window are executed symbolically: each register's value is
//! expressed in the registers' values before the window. If a fused operation computes that
//! value, and all other written registers are dead, the operations are fused.

use smallvec::SmallVec;

use super::fused::Fused;
use super::window::Window;
use crate::isa::{AluOp, Operand, Reg, RegSet, Width};
use crate::lower::op::Op;

/// The most operations that are fused.
const LONGEST: usize = 5;

/// A register's value, in terms of the registers' values before the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Symbol {
    /// The old value of a register.
    Was(Reg),
    /// The low half of an old value.
    Low(Reg),
    /// An old value, shifted left.
    Left(Width, Reg, u8),
    /// An old value, shifted right logically.
    Right(Width, Reg, u8),
    /// The result of a fused operation, which has another destination.
    Made(Fused),
}

impl Symbol {
    /// The fused operation that sets a register to this value; none for mere moves.
    const fn fused(self, dst: Reg) -> Option<Fused> {
        let (op, width, left, by) = match self {
            Self::Was(_) | Self::Low(_) => return None,
            Self::Made(fused) => return Some(fused),
            Self::Left(width, reg, by) => (AluOp::Lsh, width, reg, by),
            Self::Right(width, reg, by) => (AluOp::Rsh, width, reg, by),
        };
        Some(Fused::Alu {
            op,
            width,
            dst,
            left,
            right: Operand::Imm(by as i32),
        })
    }
}

/// The fused operation that the first operations compute, and how many they are.
pub(super) fn arithmetic(window: &Window<'_>) -> Option<(Fused, u8)> {
    let starts = |op: &Op| match op {
        Op::Alu { op, src, .. } => match op {
            AluOp::Mov => src.reg().is_some(),
            AluOp::Lsh | AluOp::Rsh => src.imm().is_some(),
            _ => false,
        },
        _ => false,
    };
    if !matches!(window.ops, [first, Op::Alu { .. }, ..] if starts(first)) {
        return None;
    }
    let mut symbols = Symbols::default();
    let mut longest = None;
    for (op, n) in window.ops.iter().take(LONGEST).zip(1usize..) {
        let Op::Alu {
            op,
            width,
            dst,
            src,
        } = *op
        else {
            break;
        };
        let Some(symbol) = symbols.computed(op, width, dst, src) else {
            break;
        };
        symbols.set(dst, symbol);
        let Some(fused) = symbol.fused(dst) else {
            continue;
        };
        let others = symbols.written.minus(RegSet::of(&[dst]));
        let mut others = others.iter();
        if n > 1 && others.all(|reg| window.is_dead(reg, window.after(n))) {
            longest = Some((fused, u8::try_from(n).ok()?));
        }
    }
    longest
}

/// The symbols of the registers that were written.
#[derive(Default)]
struct Symbols {
    known: SmallVec<[(Reg, Symbol); LONGEST]>,
    written: RegSet,
}

impl Symbols {
    fn of(&self, reg: Reg) -> Symbol {
        let mut latest = self.known.iter().rev();
        let found = latest.find(|(known, _)| *known == reg);
        found.map_or(Symbol::Was(reg), |(_, symbol)| *symbol)
    }

    fn set(&mut self, reg: Reg, symbol: Symbol) {
        self.known.push((reg, symbol));
        self.written = self.written.with(reg);
    }

    /// The result of an operation on its operands; none if no symbol expresses it.
    fn computed(&self, op: AluOp, width: Width, dst: Reg, src: Operand) -> Option<Symbol> {
        let x = self.of(dst);
        let y = match src {
            Operand::Reg(src) => self.of(src),
            Operand::Imm(imm) => return self.with_constant(op, width, dst, imm),
        };
        match (op, width, x, y) {
            // The fused operation has another destination.
            (AluOp::Mov, _, _, Symbol::Made(_)) => None,
            (AluOp::Mov, Width::W64, _, y) => Some(y),
            (AluOp::Mov, Width::W32, _, Symbol::Was(reg) | Symbol::Low(reg)) => {
                Some(Symbol::Low(reg))
            }
            (AluOp::Mov, ..) => None,
            (
                AluOp::Or | AluOp::Xor | AluOp::Add,
                _,
                Symbol::Left(of, reg, left),
                Symbol::Right(too, same, right),
            )
            | (
                AluOp::Or | AluOp::Xor | AluOp::Add,
                _,
                Symbol::Right(of, reg, right),
                Symbol::Left(too, same, left),
            ) => {
                let is_rotation = of == too
                    && reg == same
                    && left + right == of.bits()
                    && (width == of || of == Width::W32);
                is_rotation.then_some(Symbol::Made(Fused::Rotate {
                    width: of,
                    dst,
                    src: reg,
                    by: left,
                }))
            }
            (
                AluOp::Add,
                Width::W64,
                Symbol::Was(base),
                Symbol::Left(Width::W64, index, left @ 1..=3),
            )
            | (
                AluOp::Add,
                Width::W64,
                Symbol::Left(Width::W64, index, left @ 1..=3),
                Symbol::Was(base),
            ) => Some(Symbol::Made(Fused::ShiftAdd {
                dst,
                base,
                index,
                left,
            })),
            (_, _, x, Symbol::Was(right)) => plain(op, width, dst, x, Operand::Reg(right)),
            _ => None,
        }
    }

    /// The same with a constant.
    fn with_constant(&self, op: AluOp, width: Width, dst: Reg, imm: i32) -> Option<Symbol> {
        let x = self.of(dst);
        let right = u8::try_from(imm).ok().filter(|by| *by < width.bits());
        let reg = match (x, width) {
            (Symbol::Was(reg), _) | (Symbol::Low(reg), Width::W32) => Some(reg),
            _ => None,
        };
        let extract = |src, left, right, signed| {
            Symbol::Made(Fused::Extract {
                width,
                dst,
                src,
                left,
                right,
                signed,
            })
        };
        match (op, x, right) {
            (AluOp::Lsh, _, Some(by)) if reg.is_some() => {
                reg.map(|reg| Symbol::Left(width, reg, by))
            }
            (AluOp::Rsh, _, Some(by)) if reg.is_some() => {
                reg.map(|reg| Symbol::Right(width, reg, by))
            }
            (AluOp::Rsh, Symbol::Left(of, reg, left), Some(by)) if of == width => {
                Some(extract(reg, left, by, false))
            }
            (AluOp::Arsh, Symbol::Left(of, reg, left), Some(by)) if of == width => {
                Some(extract(reg, left, by, true))
            }
            (AluOp::And, Symbol::Right(of, src, right), _) if of == width => {
                Some(Symbol::Made(Fused::Bits {
                    width,
                    dst,
                    src,
                    right,
                    mask: imm,
                }))
            }
            (AluOp::Mov, ..) => None,
            (_, x, _) => plain(op, width, dst, x, Operand::Imm(imm)),
        }
    }
}

/// A three-operand operation on old values.
fn plain(op: AluOp, width: Width, dst: Reg, left: Symbol, right: Operand) -> Option<Symbol> {
    let left = match (left, width) {
        (Symbol::Was(reg), _) | (Symbol::Low(reg), Width::W32) => reg,
        _ => return None,
    };
    Some(Symbol::Made(Fused::Alu {
        op,
        width,
        dst,
        left,
        right,
    }))
}
