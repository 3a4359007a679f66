//! Inserts instructions into a program and adjusts jumps, calls, references to callbacks,
//! functions, source lines and CO-RE accesses.
//!
//! ```text
//! function:  entry        calls and references to the function lead here
//!            before(pc)   jumps to the instruction lead here
//!            pc           or its replacement
//!            after(pc)    if the instruction falls through
//!            …
//!            end          after the function's last instruction
//! ```

mod apply;
mod block;
mod edits;
mod layout;

pub(super) use block::{Block, Label};
pub(super) use edits::Patch;

#[cfg(test)]
mod tests;
