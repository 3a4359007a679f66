//! Entering machine code.

#![allow(unsafe_code)] // the invariant stands at `Entry`

use std::ptr::{self, with_exposed_provenance};

use super::super::native::{DONE, Native};
use super::run::{End, Run, Stop};
use crate::lower::Target;
use crate::vm::Machine;

/// The way from Rust into a function: it takes the run and the host address of the
/// function's code, and gives a status.
///
/// Invariant: the run is in the program that the code was made from, is alive, as its
/// machine is, and nobody else refers to either meanwhile, apart from those whom the
/// code calls. The frame of the function was made, and is gone afterwards unless the
/// run stops.
type Entry = unsafe extern "C" fn(*mut Run<'_>, u64) -> u32;

impl Run<'_> {
    /// Executes the function that begins at an operation, in the frame that was made
    /// for it, until that frame is gone; its r0.
    pub(super) fn execute_native(
        &mut self,
        native: &Native,
        machine: &mut Machine,
        at: Target,
    ) -> Result<u64, Stop> {
        let Some(function) = native.entry(at) else {
            // No function begins there: the loop over operations goes on instead.
            let floor = self.depth().saturating_sub(1);
            return self.execute(machine, at, floor);
        };
        let outer = self.machine;
        self.machine = ptr::from_mut(machine);
        self.end = None;
        self.left = self.granted - self.executed.cast_signed();
        #[expect(clippy::cast_possible_truncation, reason = "it came from a pointer")]
        let enter = with_exposed_provenance::<u8>(native.enter() as usize);
        // SAFETY: code of this type stands there as long as `native` lives. An image has
        // the code of its own program only, and that is the one the run is in; the frame
        // was made by the caller, and the borrows of the run and the machine are ours.
        let status = unsafe {
            let enter = std::mem::transmute::<*const u8, Entry>(enter);
            enter(self, function)
        };
        self.executed = (self.granted - self.left).cast_unsigned();
        self.machine = outer;
        match (status, self.end.take()) {
            (DONE, _) | (_, None | Some(End::Done | End::Slow(_))) => Ok(self.host.regs[0]),
            (_, Some(End::Stop(stop))) => Err(stop),
        }
    }
}
