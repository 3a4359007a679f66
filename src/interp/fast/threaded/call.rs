//! All operations that have no function of their own, by way of `step`, and calls of
//! helpers.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::super::run::{End, Next, Run};
use super::cell::{Cell, Handler, Host, Regs, by_dst};
use crate::vm::Machine;
use crate::vm::memory::{Address, PointerField};

/// The run and its machine.
///
/// # Safety
/// As of [`Handler`]; what is returned is used before another function of a cell is.
unsafe fn parts<'r>(run: *mut Host) -> (&'r mut Run<'r>, &'r mut Machine) {
    let run = run.cast::<Run<'r>>();
    // SAFETY: the caller's: a run begins with its host part, and nobody else refers to it
    // and to its machine.
    unsafe { (&mut *run, &mut *(*run).machine) }
}

/// Does what the operation says, whichever it is.
///
/// # Safety
/// As of [`Handler`].
pub(super) unsafe fn generic(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) {
    // SAFETY: the caller's.
    unsafe {
        let next = step(cell, run, a, b, c, d);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// The cell to go on with; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn step(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let (run, machine) = unsafe { parts(run) };
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
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    // SAFETY: the caller's.
    unsafe {
        if call(cell, run, a, b, c, d) {
            (*run.cast::<Run<'_>>()).reload().go(cell.add(1), run)
        }
    }
}

/// Whether the run goes on.
///
/// # Safety
/// As of [`call_helper`].
#[inline(never)]
unsafe fn call(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) -> bool {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let ((run, machine), helper) = unsafe { (parts(run), (*cell).number()) };
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

/// Calls a function of the program.
///
/// # Safety
/// As of [`Handler`]; the cell is a call of a function.
pub(super) unsafe fn call_function(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    // SAFETY: the caller's.
    unsafe {
        let next = enter(cell, run, a, b, c, d);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// The first cell of the function; null where there is none to go on with.
///
/// # Safety
/// As of [`call_function`].
#[inline(never)]
unsafe fn enter(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let ((run, _), function) = unsafe { (parts(run), (*cell).number()) };
    run.spill(Regs(a, b, c, d));
    let at = run.index(cell);
    run.set_executed(at);
    match run.call(at, function) {
        Ok(to) => run.go_on(to),
        Err(stop) => run.end(End::Stop(stop)),
    }
}

/// Ends a function.
///
/// # Safety
/// As of [`Handler`].
pub(super) unsafe fn exit(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) {
    // SAFETY: the caller's.
    unsafe {
        let next = leave(cell, run, a, b, c, d);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// Where the caller goes on; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn leave(cell: *const Cell, run: *mut Host, a: u64, b: u64, c: u64, d: u64) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let (run, machine) = unsafe { parts(run) };
    run.spill(Regs(a, b, c, d));
    run.set_executed(run.index(cell));
    let floor = run.floor;
    match run.exit(machine, floor) {
        Some(back) => run.go_on(back),
        None => run.end(End::Done),
    }
}

/// Loads a pointer of the context.
///
/// # Safety
/// As of [`Handler`]; the cell is such a load.
pub(super) unsafe fn load_pointer<const D: u8>(
    cell: *const Cell,
    run: *mut Host,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) {
    let mut regs = Regs(a, b, c, d);
    // SAFETY: the caller's.
    unsafe {
        match pointer(cell, run) {
            Some(value) => {
                regs.set::<D>(run, (*cell).dst, value);
                regs.go(cell.add(1), run)
            }
            None => generic(cell, run, a, b, c, d),
        }
    }
}

/// The pointer, if it is one.
///
/// # Safety
/// As of [`load_pointer`].
#[inline(never)]
unsafe fn pointer(cell: *const Cell, run: *mut Host) -> Option<u64> {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let ((run, machine), cell) = unsafe { (parts(run), &*cell) };
    let context = machine
        .space
        .region(Address::from_register(run.context_address)?)?;
    let is_it = |field: &&PointerField| {
        u64::from(field.offset) == cell.imm && field.size == cell.jump.cast_unsigned()
    };
    context.pointers.iter().find(is_it).map(|field| field.value)
}

static LOAD_POINTER: [Handler; 5] = by_dst!(load_pointer);

/// The function of an [`Op::LoadPointer`](crate::lower::Op::LoadPointer).
pub(super) fn load_pointer_handler(dst: u8) -> Option<Handler> {
    LOAD_POINTER.get(usize::from(dst)).copied()
}

/// The function of any operation.
pub(super) const GENERIC: Handler = generic;
