//! Entering machine code.

#![allow(unsafe_code)] // the invariant is at `Enter`

use std::ptr::{self, with_exposed_provenance};

use super::super::native::EntryPoint;
use super::run::{End, Run, Stop};
use crate::vm::Machine;

/// An entry point from Rust into a function: takes the run and the host address of the
/// function's code, and returns r0. `jit/runtime.rs` has the rest of the convention.
///
/// Invariant: the run's current program is the one that the code was generated from. The
/// run and its machine are alive, and nothing else refers to either meanwhile, except what
/// the code calls. There is a frame for each function that the code calls.
type Enter = unsafe extern "C" fn(*mut Run<'_>, u64) -> u64;

impl Run<'_> {
    /// Executes a function of the current program in a new frame to its end, by an entry
    /// point; returns r0. The arguments are in the registers.
    #[inline]
    pub(super) fn execute_native(
        &mut self,
        machine: &mut Machine,
        EntryPoint { enter, code }: EntryPoint,
    ) -> Result<u64, Stop> {
        let outer = self.machine;
        self.machine = ptr::from_mut(machine);
        self.left = self.granted - self.executed.cast_signed();
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
        // (`tail_target`, `call_back`). This function borrows the run and the machine
        // exclusively.
        let r0 = unsafe {
            let enter = std::mem::transmute::<*const u8, Enter>(enter);
            enter(self, code)
        };
        self.executed = (self.granted - self.left).cast_unsigned();
        self.machine = outer;
        match self.end {
            None => Ok(r0),
            Some(_) => self.stopped(),
        }
    }

    /// Why machine code stopped.
    #[cold]
    fn stopped(&mut self) -> Result<u64, Stop> {
        match self.end.take() {
            Some(End::Stop(stop)) => Err(stop),
            None | Some(End::Done | End::Slow(_)) => Ok(self.host.regs[0]),
        }
    }
}
