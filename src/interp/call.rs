//! Operations without a function of their own, by way of `step`, and helper calls.

#![allow(unsafe_code)] // the invariant is at `Handler`

use crate::engine::cells::{Cell, Handler, Host, Regs, by_dst, handler};
use crate::engine::fast::{End, Next, Run};
use crate::isa::Size;
use crate::lower::Op;
use crate::vm::Machine;
use crate::vm::memory::raw;

/// The run and its machine.
///
/// # Safety
/// As of [`Handler`]; the result is used only until another cell's function runs.
unsafe fn parts<'r>(run: *mut Host) -> (&'r mut Run<'r>, &'r mut Machine) {
    let run = run.cast::<Run<'r>>();
    // SAFETY: guaranteed by the caller: a run begins with its host part, and nothing else
    // refers to the run and its machine.
    unsafe { (&mut *run, &mut *(*run).machine) }
}

handler! {
    /// Executes any operation.
    // Not inlined: a function that falls back on this one then needs no stack frame.
    #[inline(never)]
    pub(super) fn generic<>(cell, run, regs) {
        let next = step(cell, run, regs);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// Returns the next cell; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn step(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller guarantees that nothing else refers to the run and its machine.
    let (run, machine) = unsafe { parts(run) };
    run.spill(regs);
    let mut at = run.index(cell);
    run.set_executed(at);
    loop {
        let Some(&op) = run.lowered.ops().get(at as usize) else {
            return run.end(End::Slow(at));
        };
        at = match run.step(machine, at, op) {
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
        if run.has_cell(at) {
            return run.go_on(at);
        }
        // Still in the middle of the operations of the cell.
        run.executed += 1;
    }
}

handler! {
    /// Calls a helper.
    pub(super) fn call_helper<>(cell, run, regs) {
        if call(cell, run, regs) {
            (*run.cast::<Run<'_>>()).reload().go(cell.add(1), run)
        }
    }
}

/// Returns whether the run continues.
///
/// # Safety
/// As of [`call_helper`].
#[inline(never)]
unsafe fn call(cell: *const Cell, run: *mut Host, regs: Regs) -> bool {
    // SAFETY: the caller guarantees that nothing else refers to the run and its machine.
    let ((run, machine), helper) = unsafe { (parts(run), (*cell).number()) };
    run.spill(regs);
    let at = run.index(cell);
    run.set_executed(at);
    let result = run.call_helper(machine, at, helper);
    // Instructions of a callback count, too.
    run.set_base(at + 1);
    match result {
        Ok(()) => true,
        Err(stop) => {
            run.end(End::Stop(stop));
            false
        }
    }
}

handler! {
    /// Calls a function of the program.
    pub(super) fn call_function<>(cell, run, regs) {
        let next = enter(cell, run, regs);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// Returns the first cell of the function; null if there is none to continue with.
///
/// # Safety
/// As of [`call_function`].
#[inline(never)]
unsafe fn enter(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller guarantees that nothing else refers to the run and its machine.
    let ((run, _), function) = unsafe { (parts(run), (*cell).number()) };
    run.spill(regs);
    let at = run.index(cell);
    run.set_executed(at);
    match run.call(at, function) {
        Ok(to) => run.go_on(to),
        Err(stop) => run.end(End::Stop(stop)),
    }
}

handler! {
    /// Ends a function.
    pub(super) fn exit<>(cell, run, regs) {
        let next = leave(cell, run, regs);
        if !next.is_null() {
            (*run.cast::<Run<'_>>()).reload().go(next, run)
        }
    }
}

/// Returns the cell at which the caller continues; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn leave(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller guarantees that nothing else refers to the run and its machine.
    let (run, machine) = unsafe { parts(run) };
    run.spill(regs);
    run.set_executed(run.index(cell));
    let floor = run.floor;
    match run.exit(machine, floor) {
        Some(back) => run.go_on(back),
        None => run.end(End::Done),
    }
}

handler! {
    /// `dst` = a pointer of the context, by its number in `Run::pointers`.
    fn load_pointer<const D: u8>(cell, run, regs) {
        let pointers = &raw const (*run.cast::<Run<'_>>()).pointers;
        let value = *pointers.cast::<u64>().add((*cell).src.into());
        // Null, or the event has no such pointer.
        if value == 0 {
            return regs.by(generic, cell, run);
        }
        regs.set::<D>(run, (*cell).dst, value);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `r0` = the result of a helper that is constant during a run, by its number.
    fn known<const D: u8>(cell, run, regs) {
        let known = &raw const (*run.cast::<Run<'_>>()).known;
        let value = *known.cast::<u64>().add((*cell).src.into());
        regs.set::<D>(run, (*cell).dst, value);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `r0` = the address of the value under an index on the stack: the index is known to
    /// be within the map, or compared with `count`.
    fn look_up_index<const IS_THERE: bool, const D: u8>(cell, run, regs) {
        let key = (*run).frame_end.wrapping_add_signed((*cell).jump.into());
        let index = raw::load_own(key, Size::W);
        let address = (*cell).imm.wrapping_add(index << ((*cell).by & 63));
        let is_there = IS_THERE || index < u64::from((*cell).count.cast_unsigned());
        regs.set::<D>(run, (*cell).dst, if is_there { address } else { 0 });
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `r0` = the result of a look-up.
    fn look_up<const D: u8>(cell, run, regs) {
        match found(cell, run, regs) {
            Some(value) => {
                regs.set::<D>(run, (*cell).dst, value);
                regs.go(cell.add(1), run)
            }
            None => regs.by(generic, cell, run),
        }
    }
}

/// The result of a look-up; none if it has to be checked.
///
/// # Safety
/// As of [`Handler`]; the cell is a look-up.
#[inline(never)]
unsafe fn found(cell: *const Cell, run: *mut Host, regs: Regs) -> Option<u64> {
    // SAFETY: the caller guarantees that nothing else refers to the run and its machine.
    let (run, machine) = unsafe { parts(run) };
    run.spill(regs);
    let at = run.index(cell);
    match run.lowered.ops().get(at as usize) {
        Some(&Op::Lookup { map, key, .. }) => run.look_up(machine, at, map, key).ok(),
        _ => None,
    }
}

static KNOWN: [Handler; 5] = by_dst!(known);
static LOOK_UP: [Handler; 5] = by_dst!(look_up);
/// By whether the index is known to be within the map, and the location.
static LOOK_UP_INDEX: [[Handler; 5]; 2] =
    [by_dst!(look_up_index, false), by_dst!(look_up_index, true)];

/// The function of an [`Op::Known`].
pub(super) fn known_handler(dst: u8) -> Option<Handler> {
    KNOWN.get(usize::from(dst)).copied()
}

/// The function of an [`Op::Lookup`].
pub(super) fn look_up_handler(dst: u8) -> Option<Handler> {
    LOOK_UP.get(usize::from(dst)).copied()
}

/// The function of an [`Op::Lookup`] by an index on the stack.
pub(super) fn index_handler(is_there: bool, dst: u8) -> Option<Handler> {
    let handlers = LOOK_UP_INDEX.get(usize::from(is_there))?;
    handlers.get(usize::from(dst)).copied()
}

static LOAD_POINTER: [Handler; 5] = by_dst!(load_pointer);

/// The function of an [`Op::LoadPointer`](crate::lower::Op::LoadPointer).
pub(super) fn load_pointer_handler(dst: u8) -> Option<Handler> {
    LOAD_POINTER.get(usize::from(dst)).copied()
}
