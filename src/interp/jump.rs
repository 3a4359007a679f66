//! Jumps and branches.

#![allow(unsafe_code)] // the invariant is at `Handler`

use super::alu::width;
use crate::engine::cells::slow;
use crate::engine::cells::{CONSTANT, Cell, Handler, Host, Regs, by_dst_src, by_src, handler};
use crate::isa::{AluOp, JumpOp, Width, low32, sign_extend32};

/// Goes to a jump's target.
///
/// # Safety
/// As of [`Handler`]; the cell is a jump.
#[inline(always)]
unsafe fn take<const BACK: bool>(cell: *const Cell, run: *mut Host, regs: Regs) {
    // SAFETY: guaranteed by the caller; a target is a cell of the same program.
    unsafe {
        let target = cell.byte_offset((*cell).jump as isize);
        (*run).left -= i64::from((*cell).count);
        if BACK && (*run).left < 0 {
            return regs.by(slow, target, run);
        }
        regs.go(target, run)
    }
}

handler! {
    /// Goes to the target.
    fn jump<const BACK: bool>(cell, run, regs) {
        take::<BACK>(cell, run, regs)
    }
}

/// The number of a condition, one after those of [`JumpOp::ALL`], that holds where
/// [`JumpOp::Set`] does not.
const CLEAR: usize = JumpOp::ALL.len();

/// Whether a condition holds, by its number.
#[inline(always)]
fn holds<const OP: usize>(width: Width, x: u64, y: u64) -> bool {
    if OP == CLEAR {
        !JumpOp::Set.eval(width, x, y)
    } else {
        const { JumpOp::ALL[if OP == CLEAR { 0 } else { OP }] }.eval(width, x, y)
    }
}

/// The number of a condition, or of its negation.
fn number(op: JumpOp, when: bool) -> Option<usize> {
    let op = match (when, op.negated()) {
        (true, _) => op,
        (false, Some(negated)) => negated,
        (false, None) => return Some(CLEAR),
    };
    JumpOp::ALL.iter().position(|known| *known == op)
}

handler! {
    /// Goes to the target if the condition holds.
    fn branch<const OP: usize, const NARROW: bool, const BACK: bool, const D: u8, const S: u8>(
        cell, run, regs
    ) {
        let (x, y) = (
            regs.get::<D>(run, (*cell).dst),
            regs.operand::<S>(cell, run),
        );
        if holds::<OP>(width(NARROW), x, y) {
            take::<BACK>(cell, run, regs)
        } else {
            regs.go(cell.add(1), run)
        }
    }
}

handler! {
    /// Adds the low half of `imm` to a register and goes to the target if the condition
    /// holds for the register and another one, or the upper half of `imm`.
    fn count<const OP: usize, const NARROW: bool, const D: u8, const S: u8>(cell, run, regs) {
        let imm = (*cell).imm;
        let x = regs.get::<D>(run, (*cell).dst);
        let x = AluOp::Add.eval(width(NARROW), x, sign_extend32(low32(imm).cast_signed()));
        regs.set::<D>(run, (*cell).dst, x);
        let y = match S {
            CONSTANT => (imm.cast_signed() >> 32).cast_unsigned(),
            _ => regs.get::<S>(run, (*cell).src),
        };
        if holds::<OP>(width(NARROW), x, y) {
            take::<true>(cell, run, regs)
        } else {
            regs.go(cell.add(1), run)
        }
    }
}

handler! {
    /// With `CONSTANTS`, `dst` = `jump` if the condition holds and `count` if not.
    /// Otherwise `dst` = the condition's first operand, shifted right if the condition does
    /// not hold. If it holds, `third` instructions fewer are counted.
    fn select<const OP: usize, const NARROW: bool, const CONSTANTS: bool, const D: u8, const S: u8>(
        cell, run, regs
    ) {
        let x = regs.get::<S>(run, (*cell).src);
        let holds = holds::<OP>(width(NARROW), x, (*cell).imm);
        (*run).left += i64::from((*cell).third) * i64::from(holds);
        let (yes, no) = if CONSTANTS {
            let constant = |value: i32| u64::from(value.cast_unsigned());
            (constant((*cell).jump), constant((*cell).count))
        } else {
            (x, x >> ((*cell).by & 63))
        };
        regs.set::<D>(run, (*cell).dst, if holds { yes } else { no });
        regs.go(cell.add(1), run)
    }
}

macro_rules! branches {
    ($($op:literal)*) => {
        [$([
            [by_dst_src!(branch, $op, false, false), by_dst_src!(branch, $op, false, true)],
            [by_dst_src!(branch, $op, true, false), by_dst_src!(branch, $op, true, true)],
        ]),*]
    };
}

/// By condition, width, direction, and the operands' locations.
static BRANCH: [[[[[Handler; 6]; 5]; 2]; 2]; 12] = branches!(0 1 2 3 4 5 6 7 8 9 10 11);

/// The function of an [`Op::Jump`](crate::lower::Op::Jump).
pub(super) const fn jump_handler(back: bool) -> Handler {
    if back { jump::<true> } else { jump::<false> }
}

/// The function of a jump to be taken if the condition has a value.
pub(super) fn branch_handler(
    (op, when): (JumpOp, bool),
    width: Width,
    back: bool,
    dst: u8,
    src: u8,
) -> Option<Handler> {
    let number = number(op, when)?;
    let directions = BRANCH.get(number)?.get(usize::from(width == Width::W32))?;
    let handlers = directions.get(usize::from(back))?;
    handlers
        .get(usize::from(dst))?
        .get(usize::from(src))
        .copied()
}

macro_rules! counts {
    ($($op:literal)*) => {
        [$([by_dst_src!(count, $op, false), by_dst_src!(count, $op, true)]),*]
    };
}

/// By condition, width, and the operands' locations.
static COUNT: [[[[Handler; 6]; 5]; 2]; 12] = counts!(0 1 2 3 4 5 6 7 8 9 10 11);

/// The function that adds a constant and branches on the sum, both of this width.
pub(super) fn count_handler(
    (op, when): (JumpOp, bool),
    width: Width,
    dst: u8,
    src: u8,
) -> Option<Handler> {
    let widths = COUNT.get(number(op, when)?)?;
    let handlers = widths.get(usize::from(width == Width::W32))?;
    handlers
        .get(usize::from(dst))?
        .get(usize::from(src))
        .copied()
}

macro_rules! selects {
    ($($op:literal)*) => {
        [$([
            [by_dst_src!(select, $op, false, false), by_dst_src!(select, $op, false, true)],
            [by_dst_src!(select, $op, true, false), by_dst_src!(select, $op, true, true)],
        ]),*]
    };
}

/// By condition, width, whether of constants, and the locations of destination and operand.
static SELECT: [[[[[Handler; 6]; 5]; 2]; 2]; 11] = selects!(0 1 2 3 4 5 6 7 8 9 10);

/// The function that selects by a comparison with a constant.
pub(super) fn select_handler(
    op: JumpOp,
    width: Width,
    of_constants: bool,
    dst: u8,
    left: u8,
) -> Option<Handler> {
    let widths = SELECT.get(number(op, true)?)?;
    let kinds = widths.get(usize::from(width == Width::W32))?;
    let handlers = kinds.get(usize::from(of_constants))?;
    handlers
        .get(usize::from(dst))?
        .get(usize::from(left))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_functions() {
        assert_eq!(BRANCH.len(), JumpOp::ALL.len() + 1);
        for op in JumpOp::ALL {
            for when in [true, false] {
                assert!(branch_handler((*op, when), Width::W64, true, 4, 5).is_some());
                assert!(count_handler((*op, when), Width::W32, 4, 5).is_some());
            }
            assert!(select_handler(*op, Width::W32, true, 4, 3).is_some());
        }
    }
}
