//! Arithmetic.

#![allow(unsafe_code)] // the invariant is at `Handler`

use crate::engine::cells::{Cell, Handler, Host, Regs, by_dst, by_dst_src, by_src, handler};
use crate::isa::{AluOp, EndianOp, EndianSize, SignedSize, Width, movsx, neg};

pub(super) const fn width(narrow: bool) -> Width {
    if narrow { Width::W32 } else { Width::W64 }
}

handler! {
    /// `dst op= src`.
    fn alu<const OP: usize, const NARROW: bool, const D: u8, const S: u8>(cell, run, regs) {
        let (x, y) = (
            regs.get::<D>(run, (*cell).dst),
            regs.operand::<S>(cell, run),
        );
        let result = const { AluOp::ALL[OP] }.eval(width(NARROW), x, y);
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = imm`.
    fn load_imm<const D: u8>(cell, run, regs) {
        regs.set::<D>(run, (*cell).dst, (*cell).imm);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = op(dst)`.
    fn endian<const SWAPS: bool, const SIZE: usize, const D: u8>(cell, run, regs) {
        let op = if SWAPS {
            EndianOp::Bswap
        } else {
            EndianOp::ToLe
        };
        let value = regs.get::<D>(run, (*cell).dst);
        let result = op.eval(const { EndianSize::ALL[SIZE] }, value);
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = (sN)src`.
    fn extend<const NARROW: bool, const FROM: usize, const D: u8, const S: u8>(cell, run, regs) {
        let value = regs.get::<S>(run, (*cell).src);
        let result = movsx(width(NARROW), const { SignedSize::ALL[FROM] }, value);
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = -dst`.
    fn negate<const NARROW: bool, const D: u8>(cell, run, regs) {
        let result = neg(width(NARROW), regs.get::<D>(run, (*cell).dst));
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

macro_rules! widths {
    ($($op:literal)*) => {
        [$([by_dst_src!(alu, $op, false), by_dst_src!(alu, $op, true)]),*]
    };
}

/// By operation, width, and the operands' locations.
static ALU: [[[[Handler; 6]; 5]; 2]; 14] = widths!(0 1 2 3 4 5 6 7 8 9 10 11 12 13);
static LOAD_IMM: [Handler; 5] = by_dst!(load_imm);
/// By whether bytes are swapped, size, and location.
static ENDIAN: [[[Handler; 5]; 3]; 2] = [
    [
        by_dst!(endian, false, 0),
        by_dst!(endian, false, 1),
        by_dst!(endian, false, 2),
    ],
    [
        by_dst!(endian, true, 0),
        by_dst!(endian, true, 1),
        by_dst!(endian, true, 2),
    ],
];

static NEG: [[Handler; 5]; 2] = [by_dst!(negate, false), by_dst!(negate, true)];

macro_rules! extensions {
    ($narrow:literal) => {
        [
            by_dst_src!(extend, $narrow, 0),
            by_dst_src!(extend, $narrow, 1),
            by_dst_src!(extend, $narrow, 2),
        ]
    };
}

/// By width, size, and the operands' locations.
static EXTEND: [[[[Handler; 6]; 5]; 3]; 2] = [extensions!(false), extensions!(true)];

/// The function of an [`Op::Neg`](crate::lower::Op::Neg).
pub(super) fn neg_handler(width: Width, dst: u8) -> Option<Handler> {
    let handlers = NEG.get(usize::from(width == Width::W32))?;
    handlers.get(usize::from(dst)).copied()
}

/// The function of an [`Op::MovSx`](crate::lower::Op::MovSx).
pub(super) fn extend_handler(width: Width, from: SignedSize, dst: u8, src: u8) -> Option<Handler> {
    let number = SignedSize::ALL.iter().position(|known| *known == from)?;
    let sizes = EXTEND.get(usize::from(width == Width::W32))?;
    let handlers = sizes.get(number)?.get(usize::from(dst))?;
    handlers.get(usize::from(src)).copied()
}

/// The function of an [`Op::Alu`](crate::lower::Op::Alu).
pub(super) fn alu_handler(op: AluOp, width: Width, dst: u8, src: u8) -> Option<Handler> {
    let number = AluOp::ALL.iter().position(|known| *known == op)?;
    let widths = ALU.get(number)?;
    let handlers = widths.get(usize::from(width == Width::W32))?;
    handlers
        .get(usize::from(dst))?
        .get(usize::from(src))
        .copied()
}

/// The function of an [`Op::LoadImm`](crate::lower::Op::LoadImm).
pub(super) fn load_imm_handler(dst: u8) -> Option<Handler> {
    LOAD_IMM.get(usize::from(dst)).copied()
}

/// The function of an [`Op::Endian`](crate::lower::Op::Endian).
pub(super) fn endian_handler(op: EndianOp, size: EndianSize, dst: u8) -> Option<Handler> {
    let number = EndianSize::ALL.iter().position(|known| *known == size)?;
    let sizes = ENDIAN.get(usize::from(op != EndianOp::ToLe))?;
    sizes.get(number)?.get(usize::from(dst)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_functions() {
        assert_eq!(ALU.len(), AluOp::ALL.len());
        for op in AluOp::ALL {
            assert!(alu_handler(*op, Width::W32, 4, 5).is_some());
        }
        assert!(alu_handler(AluOp::Add, Width::W64, 5, 0).is_none());
    }
}
