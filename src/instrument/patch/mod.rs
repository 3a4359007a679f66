//! Inserting instructions into a program: jumps, calls, references to callbacks, functions,
//! source lines and CO-RE accesses all follow.
//!
//! ```text
//! function:  entry        calls and references to the function lead here
//!            before(pc)   jumps to the instruction lead here
//!            pc           or what stands instead of it
//!            after(pc)    where the instruction falls through
//!            …
//!            end          behind the function's last instruction
//! ```

mod apply;
mod block;
mod edits;
mod layout;

pub(super) use block::{Block, Label};
pub(super) use edits::Patch;

#[cfg(test)]
mod tests;
