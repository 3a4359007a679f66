//! Entering machine code.

#![allow(unsafe_code)] // the invariant stands at `Enter`

use std::ptr::{self, with_exposed_provenance};

use super::super::native::Way;
use super::run::{End, Run, Stop};
use crate::vm::Machine;

/// The way from Rust into a function: it takes the run and the host address of the
/// function's code, and gives r0. What else is agreed on stands in `jit/runtime.rs`.
///
/// Invariant: the run is in the program that the code was made from, is alive, as its
/// machine is, and nobody else refers to either meanwhile, apart from those whom the
/// code calls. There is a frame for each function that it calls.
type Enter = unsafe extern "C" fn(*mut Run<'_>, u64) -> u64;

impl Run<'_> {
    /// Executes a function of the program that runs now in a new frame to its end, by a
    /// way into its code; its r0. The arguments are in the
    /// registers.
    #[inline]
    pub(super) fn execute_native(
        &mut self,
        machine: &mut Machine,
        Way { enter, code }: Way,
    ) -> Result<u64, Stop> {
        let outer = self.machine;
        self.machine = ptr::from_mut(machine);
        self.left = self.granted - self.executed.cast_signed();
        #[expect(clippy::cast_possible_truncation, reason = "it came from a pointer")]
        let enter = with_exposed_provenance::<u8>(enter as usize);
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier. This thread may have fetched what stood there before the
        // code did; whoever wrote the code brought all caches to it, but not our
        // pipeline.
        unsafe {
            std::arch::asm!("isb", options(nostack, preserves_flags));
        }
        // SAFETY: code of this type stands there as long as `native` lives. An image has
        // the code of its own program only, and that is the one the run is in. A verified
        // program has at most `MAX_CALL_FRAMES` functions under way at once, callbacks
        // aside: as many frames are in reserve behind those in which a program or a
        // callback may begin (`tail_target`, `call_back`). The borrows of the run and the
        // machine are ours.
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
