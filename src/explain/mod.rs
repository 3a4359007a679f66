//! Explains logs of a kernel's verifier that someone pasted, as `verify` explains its own rejects.
//!
//! `text` finds the logs in the text that tools print around them, `parsed` reads its lines up to the
//! error, `rebuild` makes the part of the program that the log shows, and `explained` passes both
//! to [`diagnose`](crate::verifier::diagnose). No kernel's verdict is guessed: all that is said
//! comes from the log, or from an object whose instructions are those of the log.

mod explained;
mod older;
mod parsed;
mod rebuild;
mod registers;
mod text;

pub use explained::Explained;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(crate) use registers::read as registers_of;
pub(crate) use registers::words;
pub(crate) use text::insn;
pub use text::{Pasted, logs};
