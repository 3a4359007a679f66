//! Entering and leaving functions; the frames are those of [`Stack`](super::super::stack).

#![allow(unsafe_code)] // frames by their host addresses: see `Run::head`

use super::super::stack::{MAX_FRAMES, STRIDE, in_head};
use super::memory::{clear_own, load_own, store_own};
use super::run::{Level, Run};
use crate::isa::{Reg, Size};
use crate::lower::{Function, Target};
use crate::spec::limits::{MAX_MAY_GOTO, STACK_SIZE};
use crate::vm::{Fault, FaultKind, Machine};

impl Run<'_> {
    /// Makes the frame of a function that the operation at `from` calls, or that is
    /// entered there; where it begins.
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

    /// Makes the innermost frame ready for a function that begins.
    fn make_ready(&mut self, function: &Function) {
        for &(from, to) in &function.zeroed {
            self.clear(from.into(), to.into());
        }
        self.store_head(in_head!(clean), Size::W, function.stack.into());
        self.take_frame(function);
    }

    /// Gives the innermost frame, as it is, to a function that begins.
    pub(super) fn take_frame(&mut self, function: &Function) {
        self.store_head(in_head!(loops_left), Size::W, MAX_MAY_GOTO.into());
        self.lends = function.lends;
        self.know_number();
    }

    /// Makes so many bytes below the innermost frame's end zero or its own.
    pub(super) fn make_clean(&mut self, stack: u64) {
        let clean = self.head(in_head!(clean), Size::W);
        if clean < stack {
            self.clear(stack, clean);
            self.store_head(in_head!(clean), Size::W, stack);
        }
    }

    /// Makes bytes of the innermost frame zero: from so many below its end to so many.
    fn clear(&mut self, from: u64, to: u64) {
        let from = from.min(STACK_SIZE as u64);
        // SAFETY: at most 512 bytes below the end of a frame, which are its own.
        unsafe { clear_own(self.host.frame_end - from, from.saturating_sub(to)) };
    }

    /// Puts into r10 what it holds in the innermost frame.
    pub(crate) fn know_number(&mut self) {
        self.host.regs[Reg::FP.index()] = self.head(in_head!(number), Size::Dw);
    }

    /// A number of the innermost frame's head.
    fn head(&self, at: usize, size: Size) -> u64 {
        // SAFETY: `frame_end` is the end of one of the machine's frames while functions
        // are under way, and behind that lies its head, which only this run uses.
        unsafe { load_own(self.host.frame_end + at as u64, size) }
    }

    fn store_head(&mut self, at: usize, size: Size, value: u64) {
        // SAFETY: as in `head`.
        unsafe { store_own(self.host.frame_end + at as u64, size, value) }
    }

    /// A call of a function by the operation at `at`; where it begins.
    pub(crate) fn call(&mut self, at: Target, function: u16) -> Result<Target, Box<Fault>> {
        let [.., r6, r7, r8, r9, _] = self.host.regs;
        let level = Level {
            image: self.image,
            lowered: self.lowered,
            return_to: at + 1,
            saved: [r6, r7, r8, r9],
            lends: self.lends,
        };
        let entry = self.begin(at, function)?;
        self.levels.push(level);
        Ok(entry)
    }

    /// The function ends; where its caller goes on, unless only `floor` callers are left:
    /// whoever entered the function goes on then.
    pub(crate) fn exit(&mut self, machine: &mut Machine, floor: usize) -> Option<Target> {
        self.leave(machine);
        if self.levels.len() <= floor {
            return None;
        }
        let level = self.levels.pop()?;
        let [.., r6, r7, r8, r9, _] = &mut self.host.regs;
        [*r6, *r7, *r8, *r9] = level.saved;
        self.lends = level.lends;
        self.set_program(machine, level.image, level.lowered);
        self.know_number();
        Some(level.return_to)
    }

    /// Leaves the innermost frame.
    pub(crate) fn leave(&mut self, machine: &mut Machine) {
        if self.lends {
            self.renew(machine);
        }
        self.host.frame_end += STRIDE as u64;
    }

    /// Pointers to the innermost frame are stale from now on.
    pub(crate) fn renew(&mut self, machine: &mut Machine) {
        self.frames.renew(machine, self.depth().saturating_sub(1));
    }

    /// How many functions are under way.
    pub(crate) fn depth(&self) -> usize {
        self.frames.depth(self.host.frame_end)
    }

    /// Whether the innermost frame has loops left; one fewer then.
    pub(crate) fn may_loop(&mut self) -> bool {
        let left = self.head(in_head!(loops_left), Size::W);
        let fewer = left.checked_sub(1);
        if let Some(fewer) = fewer {
            self.store_head(in_head!(loops_left), Size::W, fewer);
        }
        fewer.is_some()
    }
}
