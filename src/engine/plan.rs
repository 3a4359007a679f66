//! The parameters of a run.

use std::sync::Arc;

use super::checked::Budget;
use super::counting::Counting;
use super::image::Image;

/// What to run, and how.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The possible targets of tail calls, by handle.
    pub images: &'a [Arc<Image>],
    /// The program.
    pub entry: &'a Image,
    /// The value of r1 at the start: the address of the context of the machine's current
    /// event.
    pub context: u64,
    /// The most instructions that a run may execute.
    pub budget: Budget,
    /// Whether machine code counts them.
    pub counting: Counting,
}
