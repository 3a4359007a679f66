//! Watching a run: access to registers, frames and memory before each instruction.

use std::sync::Arc;

use super::image::Image;
use crate::isa::Reg;
use crate::program::Program;
use crate::util::Pc;
use crate::vm::memory::{AccessFault, Address};
use crate::vm::{Fault, Machine};

/// An observer of a run, called before each of its instructions.
pub trait Watch {
    /// Called before an instruction is executed.
    fn before(&mut self, step: &Step<'_>);

    /// Called at the same time, and may change the machine. Does nothing by default.
    ///
    /// # Errors
    /// Why the run can't go on.
    #[doc(hidden)]
    fn interrupt(
        &mut self,
        _machine: &mut Machine,
        _image: &Image,
        _pc: Pc,
    ) -> Result<(), Box<Fault>> {
        Ok(())
    }
}

/// The state of a run before an instruction.
#[derive(Debug)]
pub struct Step<'a> {
    /// The current program; a tail call changes it.
    #[doc(hidden)]
    pub image: &'a Image,
    /// The machine that it runs on.
    #[doc(hidden)]
    pub machine: &'a Machine,
    /// The instruction.
    pub pc: Pc,
    /// The active functions, the outermost first; never empty.
    pub frames: &'a [WatchedFrame],
    /// The number of outer frames before those of the current program: functions of the programs
    /// that it extends.
    #[doc(hidden)]
    pub outer: usize,
}

impl Step<'_> {
    /// The current program; a tail call changes it.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.image.program()
    }

    /// Copies `len` bytes at an address, such as a register's value.
    ///
    /// # Errors
    /// The fault of an access by the program.
    pub fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, AccessFault> {
        self.machine.space.read(address, len)
    }
}

/// An active function.
#[derive(Debug, Clone, Copy)]
pub struct WatchedFrame {
    /// Its first instruction.
    pub start: Pc,
    /// The call that it was entered by; none for the first.
    pub callsite: Option<Pc>,
    /// Whether a helper called it.
    pub is_callback: bool,
    /// The first byte of its stack.
    #[doc(hidden)]
    pub stack: Address,
    /// Its registers. For a function that waits for a call to return, those that the call
    /// preserves are valid (r6 to r10), and the others are zero.
    pub regs: [u64; Reg::COUNT],
}
