//! Explains rejects to the program's author: what was expected, the registers' contents and
//! origin, and what to change.
//!
//! The kernel's lines only say what the verifier saw. The last line that `advice` knows
//! gives category, reason, expectation and help (the categories are those of
//! `kernel/bpf/diagnostics.c`). The path to the fault ([`Trail`](super::Trail)) gives the
//! instruction that made the value (`origin`). This has no influence on verdicts. A reject
//! without advice is shown with its position and its values.

mod advice;
mod bounds;
mod diagnosis;
mod origin;
mod place;
mod report;
mod sum;
mod template;
mod unjudged;
mod value;

pub use advice::Category;
pub(crate) use advice::has_advice;
pub use diagnosis::{Diagnosis, Label, diagnose};
pub(super) use origin::{Location, Path};
pub use place::{Refused, RefusedLine};
pub use report::{PlacedLabel, Report};
pub(crate) use template::fit;
