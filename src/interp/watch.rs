//! Watching a run: someone sees registers, frames and memory before each instruction.

use super::image::Image;
use crate::isa::Reg;
use crate::util::Pc;
use crate::vm::memory::Address;
use crate::vm::{Fault, Machine};

/// Sees a run before each of its instructions.
pub trait Watch {
    /// The run is about to execute an instruction.
    fn before(&mut self, step: &Step<'_>);

    /// The same, for someone who does something to the machine there; nothing unless
    /// said otherwise.
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

/// A run before an instruction.
#[derive(Debug)]
pub struct Step<'a> {
    /// The program that runs; a tail call changes it.
    pub image: &'a Image,
    /// The machine that it runs on.
    pub machine: &'a Machine,
    /// The instruction.
    pub pc: Pc,
    /// The calls under way, the outermost first; never empty.
    pub frames: &'a [WatchedFrame],
}

/// A function that is being executed.
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
    /// Its registers; of a function that waits for a call's end, those that it gets
    /// back are right (r6 to r10), and the others zero.
    pub regs: [u64; Reg::COUNT],
}
