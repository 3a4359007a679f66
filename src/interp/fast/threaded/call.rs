//! All operations that have no function of their own, by way of `step`, and calls of
//! helpers.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::super::run::{Next, Run};
use super::cell::{Cell, Handler, Regs};
use super::drive::End;

/// Does what the operation says, whichever it is.
///
/// # Safety
/// As of [`Handler`].
pub(super) unsafe fn generic(cell: *const Cell, run: *mut Run<'_>, a: u64, b: u64, c: u64, d: u64) {
    // SAFETY: the caller's.
    unsafe {
        let next = step(cell, run, a, b, c, d);
        if !next.is_null() {
            (*run).reload().go(next, run)
        }
    }
}

/// The cell to go on with; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn step(
    cell: *const Cell,
    run: *mut Run<'_>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let (run, machine) = unsafe { (&mut *run, &mut *(*run).machine) };
    run.spill(Regs(a, b, c, d));
    let at = run.index(cell);
    let Some(&op) = run.lowered.ops().get(at as usize) else {
        return run.end(End::Slow(at));
    };
    run.set_executed(at);
    let to = match run.step(machine, at, op) {
        Ok(Next::Follow) => at + 1,
        Ok(Next::Goto(to)) => to,
        Ok(Next::Exit) => {
            let floor = run.floor;
            match run.exit(machine, floor) {
                Some(back) => back,
                None => return run.end(End::Done),
            }
        }
        Err(stop) => return run.end(End::Stop(stop)),
    };
    run.go_on(to)
}

/// Calls a helper.
///
/// # Safety
/// As of [`Handler`]; the cell is a call of a helper.
pub(super) unsafe fn call_helper(
    cell: *const Cell,
    run: *mut Run<'_>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    // SAFETY: the caller's.
    unsafe {
        if call(cell, run, a, b, c, d) {
            (*run).reload().go(cell.add(1), run)
        }
    }
}

/// Whether the run goes on.
///
/// # Safety
/// As of [`call_helper`].
#[inline(never)]
unsafe fn call(cell: *const Cell, run: *mut Run<'_>, a: u64, b: u64, c: u64, d: u64) -> bool {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let (run, machine, helper) = unsafe {
        (
            &mut *run,
            &mut *(*run).machine,
            u16::from((*cell).dst) | u16::from((*cell).src) << 8,
        )
    };
    run.spill(Regs(a, b, c, d));
    let at = run.index(cell);
    run.set_executed(at);
    let result = run.call_helper(machine, at, helper);
    // A callback counts, too.
    run.set_base(at + 1);
    match result {
        Ok(()) => true,
        Err(stop) => {
            run.end(End::Stop(stop));
            false
        }
    }
}

/// The function of any operation.
pub(super) const GENERIC: Handler = generic;
