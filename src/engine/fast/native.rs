//! Entering machine code.

#![allow(unsafe_code)] // the invariant is at `Enter`

use std::ptr::{self, with_exposed_provenance};

use super::super::checked::Finished;
use super::super::counting::Counting;
use super::super::native::EntryPoint;
use super::run::{End, Run, Stop};
use crate::vm::Machine;

/// The results of machine code, in the host's first two result registers.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Returned {
    r0: u64,
    /// The instructions left, if they are counted.
    left: i64,
}

/// An entry point from Rust into a function: takes the run, the host address of the
/// function's code, the instructions left, the end of the caller's frame, and r1.
/// `jit/runtime.rs` has the rest of the convention.
///
/// Invariant: the run's current program is the one that the code was generated from. The
/// run and its machine are alive, and nothing else refers to either meanwhile, except what
/// the code calls. There is a frame for each function that the code calls.
type Enter = unsafe extern "C" fn(*mut Run<'_>, u64, i64, u64, u64) -> Returned;

impl Run<'_> {
    /// Executes the program's machine code from start to end.
    #[inline]
    pub(super) fn start_native(
        &mut self,
        machine: &mut Machine,
        entry_point: EntryPoint,
    ) -> Finished {
        self.machine = ptr::from_mut(machine);
        let (rest, r1) = (self.rest, self.context_address);
        let Returned { r0, left } = self.enter(entry_point, self.granted, rest, r1);
        let counted = self.counting == Counting::Exact;
        let insns = counted.then(|| (self.granted - left).cast_unsigned());
        Finished { r0, insns }
    }

    /// Executes a function of the current program in a new frame to its end, by an entry
    /// point; returns r0. The arguments are in the registers.
    pub(super) fn execute_native(
        &mut self,
        machine: &mut Machine,
        entry_point: EntryPoint,
    ) -> Result<u64, Stop> {
        let outer = self.machine;
        self.machine = ptr::from_mut(machine);
        self.left = self.granted - self.executed.cast_signed();
        let (frame_end, r1) = (self.host.frame_end, self.host.regs[1]);
        let Returned { r0, left } = self.enter(entry_point, self.left, frame_end, r1);
        if self.counting == Counting::Exact {
            self.executed = (self.granted - left).cast_unsigned();
        }
        self.machine = outer;
        match self.end {
            None => Ok(r0),
            Some(_) => self.stopped(r0),
        }
    }

    /// Calls an entry point, with the run's machine set.
    #[inline(always)]
    fn enter(
        &mut self,
        EntryPoint { enter, code }: EntryPoint,
        left: i64,
        frame_end: u64,
        r1: u64,
    ) -> Returned {
        #[expect(clippy::cast_possible_truncation, reason = "it came from a pointer")]
        let enter = with_exposed_provenance::<u8>(enter as usize);
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier. This thread may have prefetched the old contents of the
        // memory. The code's writer made all caches coherent, but can't flush this thread's
        // pipeline.
        unsafe {
            std::arch::asm!("isb", options(nostack, preserves_flags));
        }
        // SAFETY: code of this type is there as long as `native` lives. An image has only
        // the code of its own program, which is the run's current one. A verified program
        // has at most `MAX_CALL_FRAMES` active functions, not counting callbacks: as many
        // frames are in reserve after those in which a program or a callback may begin
        // (`tail_target`, `call_back`). The callers borrow the run and its machine
        // exclusively.
        unsafe {
            let enter = std::mem::transmute::<*const u8, Enter>(enter);
            enter(self, code, left, frame_end, r1)
        }
    }

    /// Why machine code that returned `r0` stopped, if it did.
    #[cold]
    pub(super) fn stopped(&mut self, r0: u64) -> Result<u64, Stop> {
        match self.end.take() {
            Some(End::Stop(stop)) => Err(stop),
            None | Some(End::Done | End::Slow(_)) => Ok(r0),
        }
    }
}
