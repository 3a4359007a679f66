//! Machine code of a lowered program as data: `jit` makes it, and the fast interpreter
//! enters it.

use std::fmt::Debug;

use crate::lower::Target;

/// Machine code for all functions of a lowered program.
#[derive(Debug)]
pub(crate) struct Native {
    /// Keeps the code where it is.
    _memory: Box<dyn Debug + Send + Sync>,
    /// The host address of the way from Rust into a function.
    enter: u64,
    /// For each function its first operation, and the host address of its code.
    entries: Vec<(Target, u64)>,
}

/// The status of a function that ended: its r0 is in the run's registers.
pub(crate) const DONE: u32 = 0;
/// The status of a run that stops.
#[cfg(feature = "jit")]
pub(crate) const STOPPED: u32 = 1;

impl Native {
    /// Code in `memory` that keeps to the invariant of the fast interpreter's `Entry`.
    #[cfg(feature = "jit")]
    pub(crate) fn new(
        memory: impl Debug + Send + Sync + 'static,
        enter: u64,
        entries: Vec<(Target, u64)>,
    ) -> Self {
        Self {
            _memory: Box::new(memory),
            enter,
            entries,
        }
    }

    /// Where the way into functions is in the host.
    pub(crate) const fn enter(&self) -> u64 {
        self.enter
    }

    /// Where the code of the function is that begins at an operation.
    pub(crate) fn entry(&self, at: Target) -> Option<u64> {
        let found = self.entries.binary_search_by_key(&at, |entry| entry.0);
        self.entries.get(found.ok()?).map(|entry| entry.1)
    }
}
