//! All operations that have no function of their own, by way of `step`, and calls of
//! helpers.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use super::super::memory::load_own;
use super::super::run::{End, Next, Run};
use super::cell::{Cell, Handler, Host, Regs, by_dst, handler};
use crate::isa::Size;
use crate::lower::Op;
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

handler! {
    /// Does what the operation says, whichever it is.
    pub(super) fn generic<>(cell, run, regs) {
        let next = step(cell, run, regs);
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
unsafe fn step(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
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
        // In the middle of what the cell did for several operations.
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

/// Whether the run goes on.
///
/// # Safety
/// As of [`call_helper`].
#[inline(never)]
unsafe fn call(cell: *const Cell, run: *mut Host, regs: Regs) -> bool {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
    let ((run, machine), helper) = unsafe { (parts(run), (*cell).number()) };
    run.spill(regs);
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

handler! {
    /// Calls a function of the program.
    pub(super) fn call_function<>(cell, run, regs) {
        let next = enter(cell, run, regs);
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
unsafe fn enter(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
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

/// Where the caller goes on; null at the end.
///
/// # Safety
/// As of [`Handler`].
#[inline(never)]
unsafe fn leave(cell: *const Cell, run: *mut Host, regs: Regs) -> *const Cell {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
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
    /// `dst` = a pointer of the context.
    fn load_pointer<const D: u8>(cell, run, regs) {
        match pointer(cell, run) {
            Some(value) => {
                regs.set::<D>(run, (*cell).dst, value);
                regs.go(cell.add(1), run)
            }
            None => regs.by(generic, cell, run),
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

handler! {
    /// `r0` = what a helper returns that stays the same for a run, by its number.
    fn known<const D: u8>(cell, run, regs) {
        let known = &raw const (*run.cast::<Run<'_>>()).known;
        let value = *known.cast::<u64>().add((*cell).src.into());
        regs.set::<D>(run, (*cell).dst, value);
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `r0` = the address of the value under an index on the stack, which is known to be
    /// there, or else below `count`.
    fn look_up_index<const IS_THERE: bool, const D: u8>(cell, run, regs) {
        let key = (*run).frame_end.wrapping_add_signed((*cell).jump.into());
        let index = load_own(key, Size::W);
        let address = (*cell).imm.wrapping_add(index << ((*cell).by & 63));
        let is_there = IS_THERE || index < u64::from((*cell).count.cast_unsigned());
        regs.set::<D>(run, (*cell).dst, if is_there { address } else { 0 });
        regs.go(cell.add(1), run)
    }
}

handler! {
    /// `r0` = what a look-up finds.
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

/// What a look-up finds; none if it has to be judged.
///
/// # Safety
/// As of [`Handler`]; the cell is a look-up.
#[inline(never)]
unsafe fn found(cell: *const Cell, run: *mut Host, regs: Regs) -> Option<u64> {
    // SAFETY: the caller's: nobody else refers to the run and its machine.
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
/// By whether the index is known to be there, and the place.
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
    let places = LOOK_UP_INDEX.get(usize::from(is_there))?;
    places.get(usize::from(dst)).copied()
}

static LOAD_POINTER: [Handler; 5] = by_dst!(load_pointer);

/// The function of an [`Op::LoadPointer`](crate::lower::Op::LoadPointer).
pub(super) fn load_pointer_handler(dst: u8) -> Option<Handler> {
    LOAD_POINTER.get(usize::from(dst)).copied()
}
