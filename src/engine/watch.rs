//! Watching a run: access to registers, frames and memory before each instruction.

use super::image::Image;
use crate::isa::Reg;
use crate::util::Pc;
use crate::vm::memory::Address;
use crate::vm::{Fault, Machine};

/// An observer of a run, called before each of its instructions.
pub trait Watch {
    /// Called before an instruction is executed.
    fn before(&mut self, step: &Step<'_>);

    /// Called at the same time, and may change the machine. Does nothing by default.
    ///
    /// # Errors
    /// Why the run can't go on.
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
    pub image: &'a Image,
    /// The machine that it runs on.
    pub machine: &'a Machine,
    /// The instruction.
    pub pc: Pc,
    /// The active functions, the outermost first; never empty.
    pub frames: &'a [WatchedFrame],
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
    pub stack: Address,
    /// Its registers. For a function that waits for a call to return, those that the call
    /// preserves are valid (r6 to r10), and the others are zero.
    pub regs: [u64; Reg::COUNT],
}
