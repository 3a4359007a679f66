//! Why a program was refused, in its author's words: what was expected, what the
//! register held and where it got that value, and what to change.
//!
//! The kernel's lines say what the verifier saw. This says what it means: the last line
//! that `advice` knows gives category, reason, expectation and help (the categories
//! are those of `kernel/bpf/diagnostics.c`); the way to the fault
//! ([`Trail`](super::Trail)) gives the instruction that made the value (`origin`).
//! Nothing here decides anything: a reject that nobody has advice for is shown with its
//! place and its values.

mod advice;
mod diagnosis;
mod origin;
mod place;
mod report;
mod sum;
mod template;
mod unjudged;
mod value;

pub use advice::Category;
pub use diagnosis::{Diagnosis, Label, diagnose};
pub use place::{Refused, RefusedLine};
pub use report::{PlacedLabel, Report};
