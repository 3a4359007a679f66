//! Functions that execute several operations.

#![allow(unsafe_code)] // the invariant is at `Handler`

use super::alu::width;
use crate::engine::cells::{CONSTANT, Cell, Handler, Host, Regs, by_dst_src, by_src, handler};
use crate::isa::{AluOp, Width, low32};

/// The operations that have functions with a separate destination and a constant.
const WITH_CONSTANT: [AluOp; 6] = [
    AluOp::Add,
    AluOp::And,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Mul,
    AluOp::Xor,
];

/// The operations that have functions with a separate destination and a register.
const WITH_REGISTER: [AluOp; 3] = [AluOp::Add, AluOp::Sub, AluOp::Xor];

handler! {
    /// `dst = src op imm`.
    fn with_constant<const OP: usize, const NARROW: bool, const D: u8, const S: u8>(
        cell, run, regs
    ) {
        let x = regs.get::<S>(run, (*cell).src);
        let result = const { WITH_CONSTANT[OP] }.eval(width(NARROW), x, (*cell).imm);
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = src op third`.
    fn with_register<const OP: usize, const NARROW: bool, const T: u8, const D: u8, const S: u8>(
        cell, run, regs
    ) {
        let (x, y) = (
            regs.get::<S>(run, (*cell).src),
            regs.get::<T>(run, (*cell).third),
        );
        let result = const { WITH_REGISTER[OP] }.eval(width(NARROW), x, y);
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst` = `src` rotated to the left by `by`.
    fn rotate<const NARROW: bool, const D: u8, const S: u8>(cell, run, regs) {
        let (value, by) = (regs.get::<S>(run, (*cell).src), u32::from((*cell).by));
        let result = if NARROW {
            u64::from(low32(value).rotate_left(by))
        } else {
            value.rotate_left(by)
        };
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = src << by >> third`, signed or not.
    fn extract<const NARROW: bool, const SIGNED: bool, const D: u8, const S: u8>(cell, run, regs) {
        let (value, width) = (regs.get::<S>(run, (*cell).src), width(NARROW));
        let value = AluOp::Lsh.eval(width, value, (*cell).by.into());
        let back = if SIGNED { AluOp::Arsh } else { AluOp::Rsh };
        let result = back.eval(width, value, (*cell).third.into());
        regs.set::<D>(run, (*cell).dst, result);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `dst = src >> by & imm`.
    fn bits<const NARROW: bool, const D: u8, const S: u8>(cell, run, regs) {
        let (value, width) = (regs.get::<S>(run, (*cell).src), width(NARROW));
        let value = AluOp::Rsh.eval(width, value, (*cell).by.into());
        regs.set::<D>(run, (*cell).dst, AluOp::And.eval(width, value, (*cell).imm));
        regs.go(cell.add(1), run)
    }
}

macro_rules! constants {
    ($($op:literal)*) => {
        [$([by_dst_src!(with_constant, $op, false), by_dst_src!(with_constant, $op, true)]),*]
    };
}

macro_rules! registers {
    ($($op:literal)*) => {
        [$([thirds!($op, false), thirds!($op, true)]),*]
    };
}

macro_rules! thirds {
    ($op:literal, $narrow:literal) => {
        [
            by_dst_src!(with_register, $op, $narrow, 0),
            by_dst_src!(with_register, $op, $narrow, 1),
            by_dst_src!(with_register, $op, $narrow, 2),
            by_dst_src!(with_register, $op, $narrow, 3),
            by_dst_src!(with_register, $op, $narrow, 4),
        ]
    };
}

/// Functions by the locations of destination and source.
type ByOperands = [[Handler; 6]; 5];

/// By operation and width.
static CONSTANTS: [[ByOperands; 2]; 6] = constants!(0 1 2 3 4 5);
/// By operation, width, and the location of the third register.
static REGISTERS: [[[ByOperands; 5]; 2]; 3] = registers!(0 1 2);
/// By width.
static ROTATE: [ByOperands; 2] = [by_dst_src!(rotate, false), by_dst_src!(rotate, true)];
static BITS: [ByOperands; 2] = [by_dst_src!(bits, false), by_dst_src!(bits, true)];
/// By width and whether the sign is extended.
static EXTRACT: [[ByOperands; 2]; 2] = [
    [
        by_dst_src!(extract, false, false),
        by_dst_src!(extract, false, true),
    ],
    [
        by_dst_src!(extract, true, false),
        by_dst_src!(extract, true, true),
    ],
];

fn of(handlers: &ByOperands, dst: u8, src: u8) -> Option<Handler> {
    handlers
        .get(usize::from(dst))?
        .get(usize::from(src))
        .copied()
}

fn is_narrow(width: Width) -> usize {
    usize::from(width == Width::W32)
}

/// The function of `dst = src op right`, where `right` is [`CONSTANT`] or a register's
/// location.
pub(super) fn alu_handler(op: AluOp, width: Width, dst: u8, src: u8, right: u8) -> Option<Handler> {
    let number = |ops: &[AluOp]| ops.iter().position(|known| *known == op);
    let handlers = if right == CONSTANT {
        let widths = CONSTANTS.get(number(&WITH_CONSTANT)?)?;
        widths.get(is_narrow(width))?
    } else {
        let widths = REGISTERS.get(number(&WITH_REGISTER)?)?;
        widths.get(is_narrow(width))?.get(usize::from(right))?
    };
    of(handlers, dst, src)
}

/// The function of a rotation.
pub(super) fn rotate_handler(width: Width, dst: u8, src: u8) -> Option<Handler> {
    of(ROTATE.get(is_narrow(width))?, dst, src)
}

/// The function of a shift and a mask.
pub(super) fn bits_handler(width: Width, dst: u8, src: u8) -> Option<Handler> {
    of(BITS.get(is_narrow(width))?, dst, src)
}

/// The function of two shifts.
pub(super) fn extract_handler(width: Width, signed: bool, dst: u8, src: u8) -> Option<Handler> {
    let signs = EXTRACT.get(is_narrow(width))?;
    of(signs.get(usize::from(signed))?, dst, src)
}
