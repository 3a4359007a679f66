//! Entering, leaving, and the budget.

#![allow(unsafe_code)] // see `Handler`

use std::ptr;

use super::cell::{Cell, Host, Regs, handler};
use super::code::Threaded;
use crate::engine::fast::run::{End, Run, Stop};
use crate::lower::Target;
use crate::vm::Machine;

/// How many times its length a program may execute between two checks of the budget: each
/// active function continues to its end at most.
const LONGEST: i64 = 10;

impl Run<'_> {
    /// Executes cells from `at` on until only `floor` frames are left; returns r0.
    pub(crate) fn thread(
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
    pub(crate) fn set_base(&mut self, at: Target) {
        let ordinal = i64::from(self.lowered.ordinal(at));
        let base = self.executed.cast_signed().wrapping_sub(ordinal);
        // No overflow: the base is at most the program's length below zero, and the limit is ten
        // times that below the greatest number.
        self.host.left = self.host.limit.wrapping_sub(base);
    }

    /// How many instructions were executed before an operation, which is the current one.
    fn executed_before(&self, at: Target) -> u64 {
        let base = self.host.limit.wrapping_sub(self.host.left);
        let ordinal = i64::from(self.lowered.ordinal(at));
        base.wrapping_add(ordinal).cast_unsigned()
    }

    /// Sets the limit for the current program.
    pub(crate) fn set_limit(&mut self) {
        let budget = i64::try_from(self.budget.0).unwrap_or(i64::MAX);
        let len = i64::try_from(self.lowered.program().insns.len()).unwrap_or(i64::MAX);
        self.host.limit = budget.saturating_sub(len.saturating_mul(LONGEST));
    }

    /// Sets the number of executed instructions, including the one at `at`.
    pub(crate) fn set_executed(&mut self, at: Target) {
        self.executed = self.executed_before(at).wrapping_add(1);
    }

    /// The cell of an operation to continue with, after `executed` instructions; null if
    /// the loop over operations has to continue.
    pub(crate) fn go_on(&mut self, at: Target) -> *const Cell {
        let cell = self.code.and_then(|code| code.cell(at));
        let Some(cell) = cell else {
            return self.end(End::Slow(at));
        };
        self.set_base(at);
        if self.host.left < 0 {
            return self.end(End::Slow(at));
        }
        cell
    }

    /// Whether an operation has a cell, and is not executed by an earlier one's.
    pub(crate) fn has_cell(&self, at: Target) -> bool {
        self.code.is_some_and(|code| code.cell(at).is_some())
    }

    /// Records why the run ends; returns null as the next cell.
    pub(crate) fn end(&mut self, end: End) -> *const Cell {
        self.end = Some(end);
        ptr::null()
    }

    /// The index of a cell's operation.
    pub(crate) fn index(&self, cell: *const Cell) -> Target {
        self.code.map_or(0, |code| code.index(cell))
    }

    /// Stores the host registers to the run.
    pub(crate) fn spill(&mut self, regs: Regs) {
        let hot = self.code.map_or([0; 4], Threaded::hot);
        for (number, value) in hot.into_iter().zip([regs.0, regs.1, regs.2, regs.3]) {
            if let Some(reg) = self.host.regs.get_mut(usize::from(number)) {
                *reg = value;
            }
        }
    }

    /// Loads the host registers from the run.
    // Always inline: a function that gets the registers through memory of its own can't end
    // with a jump to the next cell's function, and the stack would grow.
    #[inline(always)]
    pub(crate) fn reload(&self) -> Regs {
        let [a, b, c, d] = self.code.map_or([0; 4], Threaded::hot);
        let reg = |number: u8| {
            let reg = self.host.regs.get(usize::from(number));
            reg.copied().unwrap_or(0)
        };
        Regs(reg(a), reg(b), reg(c), reg(d))
    }
}

handler! {
    /// The budget may not last: the loop over operations continues at a cell, for which the
    /// base is set.
    // Not inlined: a function that may end so then needs no stack frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn slow<>(cell, run, regs) {
        // As `Handler` demands, nothing else refers to the run.
        let run = &mut *run.cast::<Run<'_>>();
        run.spill(regs);
        let at = run.index(cell);
        run.executed = run.executed_before(at);
        run.end(End::Slow(at));
    }
}
