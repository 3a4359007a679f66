//! Loads that found nothing, and read zero.

use super::fault::Fault;

/// How many are kept.
const KEPT: usize = 16;

/// Loads through pointers of the kernel that led nowhere, first come.
#[derive(Debug, Default)]
pub(crate) struct Probed(Vec<Fault>);

impl Probed {
    /// Whether there is room for another one.
    pub const fn has_room(&self) -> bool {
        self.0.len() < KEPT
    }

    /// Keeps one.
    pub fn push(&mut self, fault: Fault) {
        if self.has_room() {
            self.0.push(fault);
        }
    }

    /// Takes those that there are.
    pub fn take(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.0)
    }
}
