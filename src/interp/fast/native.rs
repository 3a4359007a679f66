//! Machine code as the fast interpreter sees it: a layer above makes it.

use std::fmt::Debug;

use super::run::{Run, Stop};
use crate::lower::Target;
use crate::vm::Machine;

/// Machine code for the operations of a lowered program.
pub(crate) trait Native: Debug + Send + Sync {
    /// Executes the function that begins at an operation, in the frame that was made
    /// for it, until that frame is gone; its r0. The run is in the program that the
    /// code was made from, which [`Image::compile`](crate::interp::Image) sees to.
    fn execute(&self, run: &mut Run<'_>, machine: &mut Machine, entry: Target)
    -> Result<u64, Stop>;

    /// Where in the host's memory the main program begins, for a tail call.
    fn start(&self) -> u64;
}
