//! Entering and leaving functions; the frames are those of [`Stack`](super::super::stack).

#![allow(unsafe_code)] // frames by their host addresses: see `Run::head`

use super::super::stack::{MAX_FRAMES, STRIDE, in_head};
use super::run::{Run, SavedCaller};
use crate::isa::{Reg, Size};
use crate::lower::{Function, Target};
use crate::spec::limits::{MAX_MAY_GOTO, STACK_SIZE};
use crate::vm::memory::raw;
use crate::vm::{Fault, FaultKind, Machine};

impl Run<'_> {
    /// Creates the frame of a function called or entered by the operation at `from`;
    /// returns the function's first operation.
    pub(super) fn begin(&mut self, from: Target, function: u16) -> Result<Target, Box<Fault>> {
        let lowered = self.lowered;
        let Some(function) = lowered.functions().get(usize::from(function)) else {
            return Err(self.fault(from, FaultKind::OutOfProgram(-1)));
        };
        if self.depth() >= MAX_FRAMES {
            return Err(self.fault(from, FaultKind::Depth(MAX_FRAMES)));
        }
        self.host.frame_end -= STRIDE as u64;
        self.make_ready(function);
        Ok(function.entry)
    }

    /// Prepares the innermost frame for a function.
    fn make_ready(&mut self, function: &Function) {
        for &(from, to) in &function.zeroed {
            self.clear(from.into(), to.into());
        }
        self.store_head(in_head!(clean), Size::W, function.stack.into());
        self.take_frame(function);
    }

    /// Hands the innermost frame over, as it is, to a function.
    pub(super) fn take_frame(&mut self, function: &Function) {
        self.store_head(in_head!(loops_left), Size::W, MAX_MAY_GOTO.into());
        self.frame_escapes = function.frame_escapes;
        self.load_frame_pointer();
    }

    /// Ensures that `stack` bytes below the innermost frame's end are zero or the frame's
    /// own.
    pub(super) fn make_clean(&mut self, stack: u64) {
        let clean = self.head(in_head!(clean), Size::W);
        if clean < stack {
            self.clear(stack, clean);
            self.store_head(in_head!(clean), Size::W, stack);
        }
    }

    /// Zeroes bytes of the innermost frame: from `from` bytes below its end up to `to`
    /// bytes.
    fn clear(&mut self, from: u64, to: u64) {
        let from = from.min(STACK_SIZE as u64);
        // SAFETY: the bytes lie within the 512 bytes below the end of a frame, which belong
        // to it.
        unsafe { raw::clear_own(self.host.frame_end - from, from.saturating_sub(to)) };
    }

    /// Sets r10 to its value in the innermost frame.
    pub(crate) fn load_frame_pointer(&mut self) {
        self.host.regs[Reg::FP.index()] = self.head(in_head!(number), Size::Dw);
    }

    /// Loads a number from the innermost frame's head.
    fn head(&self, at: usize, size: Size) -> u64 {
        // SAFETY: while functions are active, `frame_end` is the end of one of the
        // machine's frames, followed by its head, which only this run uses.
        unsafe { raw::load_own(self.host.frame_end + at as u64, size) }
    }

    fn store_head(&mut self, at: usize, size: Size, value: u64) {
        // SAFETY: as in `head`.
        unsafe { raw::store_own(self.host.frame_end + at as u64, size, value) }
    }

    /// Calls a function for the operation at `at`; returns the function's first operation.
    pub(crate) fn call(&mut self, at: Target, function: u16) -> Result<Target, Box<Fault>> {
        let [.., r6, r7, r8, r9, _] = self.host.regs;
        let caller = SavedCaller {
            image: self.image,
            lowered: self.lowered,
            return_to: at + 1,
            saved: [r6, r7, r8, r9],
            frame_escapes: self.frame_escapes,
        };
        let entry = self.begin(at, function)?;
        self.saved_callers.push(caller);
        Ok(entry)
    }

    /// Ends the function; returns where its caller continues, or none if only `floor`
    /// callers are left: then whoever entered the function continues.
    pub(crate) fn exit(&mut self, machine: &mut Machine, floor: usize) -> Option<Target> {
        self.leave(machine);
        if self.saved_callers.len() <= floor {
            return None;
        }
        let caller = self.saved_callers.pop()?;
        let [.., r6, r7, r8, r9, _] = &mut self.host.regs;
        [*r6, *r7, *r8, *r9] = caller.saved;
        self.frame_escapes = caller.frame_escapes;
        self.set_program(machine, caller.image, caller.lowered);
        self.load_frame_pointer();
        Some(caller.return_to)
    }

    /// Leaves the innermost frame.
    pub(crate) fn leave(&mut self, machine: &mut Machine) {
        if self.frame_escapes {
            self.renew(machine);
        }
        self.host.frame_end += STRIDE as u64;
    }

    /// Makes pointers to the innermost frame stale.
    pub(crate) fn renew(&mut self, machine: &mut Machine) {
        self.frames.renew(machine, self.depth().saturating_sub(1));
    }

    /// The number of active functions.
    pub(crate) fn depth(&self) -> usize {
        self.frames.depth(self.host.frame_end)
    }

    /// Takes one of the innermost frame's loops; whether there was one left.
    pub(crate) fn may_loop(&mut self) -> bool {
        let left = self.head(in_head!(loops_left), Size::W);
        let fewer = left.checked_sub(1);
        if let Some(fewer) = fewer {
            self.store_head(in_head!(loops_left), Size::W, fewer);
        }
        fewer.is_some()
    }
}
