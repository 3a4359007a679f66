//! Entering, leaving, and the budget.

#![allow(unsafe_code)] // see `Handler`

use std::ptr;
use std::sync::OnceLock;

use super::super::run::{End, Run, Stop};
use super::cell::{Cell, Host, Regs};
use super::code::Threaded;
use crate::lower::Target;
use crate::vm::Machine;

/// How many times its length a program may execute between two checks of the budget: each
/// active function continues to its end at most.
const LONGEST: i64 = 10;

impl Run<'_> {
    /// Executes cells from `at` on until only `floor` frames are left; returns r0.
    pub(in crate::interp::fast) fn thread(
        &mut self,
        machine: &mut Machine,
        at: Target,
        floor: usize,
    ) -> Result<u64, Stop> {
        if self.code.is_none() {
            return self.execute(machine, at, floor);
        }
        let outer = (self.machine, self.floor);
        (self.machine, self.floor) = (ptr::from_mut(machine), floor);
        self.end = None;
        let first = self.go_on(at);
        if !first.is_null() {
            let regs = self.reload();
            // SAFETY: the cell belongs to the run's program, whose operations are verified;
            // this function borrows the machine exclusively.
            unsafe { regs.go(first, ptr::from_mut(self).cast()) };
        }
        let end = self.end.take();
        (self.machine, self.floor) = outer;
        match end {
            Some(End::Done) | None => Ok(self.host.regs[0]),
            Some(End::Stop(stop)) => Err(stop),
            Some(End::Slow(at)) => self.execute(machine, at, floor),
        }
    }

    /// Sets the base for continuing at an operation, after `executed` instructions.
    pub(super) fn set_base(&mut self, at: Target) {
        let ordinal = i64::from(self.lowered.ordinal(at));
        self.host.base = self.executed.cast_signed().wrapping_sub(ordinal);
    }

    /// Sets the limit for the current program.
    pub(in crate::interp::fast) fn set_limit(&mut self) {
        let budget = i64::try_from(self.budget.0).unwrap_or(i64::MAX);
        let len = i64::try_from(self.lowered.program().insns.len()).unwrap_or(i64::MAX);
        self.host.limit = budget.saturating_sub(len.saturating_mul(LONGEST));
    }

    /// Sets the number of executed instructions, including the one at `at`.
    pub(super) fn set_executed(&mut self, at: Target) {
        let ordinal = i64::from(self.lowered.ordinal(at));
        self.executed = self.host.base.wrapping_add(ordinal + 1).cast_unsigned();
    }

    /// The cell of an operation to continue with, after `executed` instructions; null if
    /// the loop over operations has to continue.
    pub(super) fn go_on(&mut self, at: Target) -> *const Cell {
        let cell = self.code.and_then(|code| code.cell(at));
        let Some(cell) = cell else {
            return self.end(End::Slow(at));
        };
        self.set_base(at);
        if self.host.base > self.host.limit {
            return self.end(End::Slow(at));
        }
        cell
    }

    /// Whether an operation has a cell, and is not executed by an earlier one's.
    pub(super) fn has_cell(&self, at: Target) -> bool {
        self.code.is_some_and(|code| code.cell(at).is_some())
    }

    /// Records why the run ends; returns null as the next cell.
    pub(super) fn end(&mut self, end: End) -> *const Cell {
        self.end = Some(end);
        ptr::null()
    }

    /// The index of a cell's operation.
    pub(super) fn index(&self, cell: *const Cell) -> Target {
        self.code.map_or(0, |code| code.index(cell))
    }

    /// Stores the host registers to the run.
    pub(super) fn spill(&mut self, regs: Regs) {
        let hot = self.code.map_or([0; 4], Threaded::hot);
        for (number, value) in hot.into_iter().zip([regs.0, regs.1, regs.2, regs.3]) {
            if let Some(reg) = self.host.regs.get_mut(usize::from(number)) {
                *reg = value;
            }
        }
    }

    /// Loads the host registers from the run.
    pub(super) fn reload(&self) -> Regs {
        let hot = self.code.map_or([0; 4], Threaded::hot);
        let reg = |number: u8| {
            self.host
                .regs
                .get(usize::from(number))
                .copied()
                .unwrap_or(0)
        };
        let [a, b, c, d] = hot.map(reg);
        Regs(a, b, c, d)
    }
}

/// The budget may not last: the loop over operations continues at a cell, for which the
/// base is set.
///
/// # Safety
/// As of [`Handler`](super::cell::Handler).
#[cold]
pub(super) unsafe fn slow(cell: *const Cell, run: *mut Host, regs: Regs) {
    // SAFETY: the caller guarantees that nothing else refers to the run.
    let run = unsafe { &mut *run.cast::<Run<'_>>() };
    run.spill(regs);
    let at = run.index(cell);
    let ordinal = i64::from(run.lowered.ordinal(at));
    run.executed = run.host.base.wrapping_add(ordinal).cast_unsigned();
    run.end(End::Slow(at));
}

/// Whether calls in tail position use no stack in this build: tested once.
pub(in crate::interp) fn holds() -> bool {
    static HOLDS: OnceLock<bool> = OnceLock::new();
    *HOLDS.get_or_init(|| {
        let (mut first, mut last) = (0, 0);
        // Opaque to the compiler, so that it makes no loop of it.
        let itself = std::hint::black_box(Probe(probe));
        probe(&itself, CALLS, &mut first, &mut last, 0, 0);
        first == last
    })
}

/// How many calls the test makes.
const CALLS: u64 = 16;

/// A function that calls another one in tail position, as those of cells do.
struct Probe(fn(&Self, u64, &mut usize, &mut usize, u64, u64));

/// Calls itself and records the stack's position at the first and at the last call.
#[inline(never)]
fn probe(itself: &Probe, left: u64, first: &mut usize, last: &mut usize, a: u64, b: u64) {
    note(if left == CALLS {
        &mut *first
    } else {
        &mut *last
    });
    if left > 0 {
        (itself.0)(itself, left - 1, first, last, b, a);
    }
}

/// Records the stack's position.
#[inline(never)]
fn note(place: &mut usize) {
    let here = 0u8;
    *place = std::hint::black_box(&raw const here).addr();
}
