//! Lock-free slots for handles of programs or maps.

use std::sync::atomic::{AtomicU32, Ordering};

use super::super::memory::zeroed;
use crate::util::Errno;

/// An optional handle per index: the handle plus 1, or 0 for none. Untouched pages use no
/// memory.
#[derive(Debug)]
pub(super) struct Handles(Box<[AtomicU32]>);

impl Handles {
    /// `count` empty slots.
    pub(super) fn new(count: u32) -> Self {
        Self(zeroed(count as usize))
    }

    fn slot(&self, index: u32) -> Option<&AtomicU32> {
        self.0.get(index as usize)
    }

    /// The handle in a slot; `None` if it is empty or there is no such slot.
    pub(super) fn get(&self, index: u32) -> Option<u32> {
        let handle = self.slot(index)?.load(Ordering::Relaxed);
        handle.checked_sub(1)
    }

    /// Sets the handle of a slot; `E2BIG` past the end.
    pub(super) fn set(&self, index: u32, handle: u32) -> Result<(), Errno> {
        let handle = handle.checked_add(1).ok_or(Errno::EBADF)?;
        let slot = self.slot(index).ok_or(Errno::E2BIG)?;
        slot.store(handle, Ordering::Relaxed);
        Ok(())
    }

    /// Clears a slot; `E2BIG` past the end, `ENOENT` if it is empty.
    pub(super) fn remove(&self, index: u32) -> Result<(), Errno> {
        let slot = self.slot(index).ok_or(Errno::E2BIG)?;
        match slot.swap(0, Ordering::SeqCst) {
            0 => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}
