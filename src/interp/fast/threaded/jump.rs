//! Jumps and branches.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::cell::{Cell, Handler, Host, Regs, by_dst_src, by_src};
use super::drive::slow;
use crate::isa::{JumpOp, Width};

/// Goes to a jump's target.
///
/// # Safety
/// As of [`Handler`]; the cell is a jump.
#[inline(always)]
unsafe fn take<const BACK: bool>(cell: *const Cell, run: *mut Host, regs: Regs) {
    // SAFETY: the caller's; a target is a cell of the same program.
    unsafe {
        let target = cell.offset((*cell).jump as isize);
        (*run).base += i64::from((*cell).count);
        if BACK && (*run).base > (*run).limit {
            return slow(target, run, regs.0, regs.1, regs.2, regs.3);
        }
        regs.go(target, run)
    }
}

unsafe fn jump<const BACK: bool>(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    // SAFETY: the caller's.
    unsafe { take::<BACK>(cell, run, Regs(a, b, c, d)) }
}

unsafe fn branch<
    const OP: usize,
    const NARROW: bool,
    const BACK: bool,
    const D: u8,
    const S: u8,
>(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    let regs = Regs(a, b, c, d);
    let width = if NARROW { Width::W32 } else { Width::W64 };
    // SAFETY: the caller's.
    unsafe {
        let (x, y) = (
            regs.get::<D>(run, (*cell).dst),
            regs.operand::<S>(cell, run),
        );
        if const { JumpOp::ALL[OP] }.eval(width, x, y) {
            take::<BACK>(cell, run, regs)
        } else {
            regs.go(cell.add(1), run)
        }
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

/// By condition, width, direction, and the places of the operands.
static BRANCH: [[[[[Handler; 6]; 5]; 2]; 2]; 11] = branches!(0 1 2 3 4 5 6 7 8 9 10);

/// The function of an [`Op::Jump`](crate::lower::Op::Jump).
pub(super) const fn jump_handler(back: bool) -> Handler {
    if back { jump::<true> } else { jump::<false> }
}

/// The function of an [`Op::JumpIf`](crate::lower::Op::JumpIf).
pub(super) fn branch_handler(
    op: JumpOp,
    width: Width,
    back: bool,
    dst: u8,
    src: u8,
) -> Option<Handler> {
    let number = JumpOp::ALL.iter().position(|known| *known == op)?;
    let directions = BRANCH.get(number)?.get(usize::from(width == Width::W32))?;
    let places = directions.get(usize::from(back))?;
    places.get(usize::from(dst))?.get(usize::from(src)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_functions() {
        assert_eq!(BRANCH.len(), JumpOp::ALL.len());
        for op in JumpOp::ALL {
            assert!(branch_handler(*op, Width::W64, true, 4, 5).is_some());
        }
    }
}
