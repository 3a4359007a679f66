//! Uninitialised bytes that left programs, until they are taken.

use std::sync::PoisonError;

use super::leak::{Leak, LeakLog};
use super::state::Machine;

/// The most that a machine keeps.
const KEPT: usize = 256;

impl Machine {
    /// Whether runs look for uninitialised bytes that leave programs.
    #[must_use]
    pub const fn finds_uninit(&self) -> bool {
        self.finds_uninit
    }

    /// Sets whether runs look for uninitialised bytes that leave programs.
    pub const fn set_finds_uninit(&mut self, finds: bool) {
        self.finds_uninit = finds;
    }

    /// Keeps all that runs find from now on in this log, too.
    pub fn log_leaks(&mut self, log: LeakLog) {
        self.leak_log = Some(log);
    }

    /// Adds what a run found. What former runs on the same event found is only counted.
    pub(crate) fn note_leaks(&mut self, leaks: Vec<Leak>) {
        if let Some(log) = &self.leak_log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            for leak in &leaks {
                if log.len() < KEPT && !log.iter().any(|known| known.is_again(leak)) {
                    log.push(leak.clone());
                }
            }
        }
        let kept = &mut self.run.leaks;
        for leak in leaks {
            let known = kept.iter().position(|known| known.is_again(&leak));
            if let Some(at) = known {
                if let Some(known) = kept.get_mut(at) {
                    known.times += leak.times;
                }
            } else if kept.len() < KEPT {
                kept.push(leak);
            }
        }
    }

    /// Takes what runs found since the last call.
    pub(crate) fn take_leaks(&mut self) -> Vec<Leak> {
        std::mem::take(&mut self.run.leaks)
    }
}
