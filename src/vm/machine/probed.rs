//! Loads of unmapped addresses, which read 0.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault::Fault;

/// How many loads are kept.
const KEPT: usize = 16;

/// The first loads through invalid pointers to kernel objects.
#[derive(Debug, Default)]
pub(super) struct Probed(Mutex<Vec<Fault>>);

impl Probed {
    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a load if there is room.
    pub fn note(&self, fault: impl FnOnce() -> Box<Fault>) {
        let mut kept = self.lock();
        if kept.len() < KEPT {
            kept.push(*fault());
        }
    }

    /// Takes the loads.
    pub fn take(&mut self) -> Vec<Fault> {
        std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}
