//! What a run is about.

use std::sync::Arc;

use super::checked::Budget;
use super::image::Image;

/// What is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The programs that tail calls reach, by handle.
    pub images: &'a [Arc<Image>],
    /// The program.
    pub entry: &'a Image,
    /// What r1 holds at the start: the address of the context of the machine's current
    /// event.
    pub context: u64,
    /// The most that a run may execute.
    pub budget: Budget,
}
