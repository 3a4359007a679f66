//! Lock-free slots for handles of programs or maps.

use super::super::memory::SharedBytes;
use crate::util::Errno;

/// An optional handle per index. Untouched pages use no memory.
#[derive(Debug)]
pub(super) struct Handles {
    /// 4 bytes per slot: the handle plus 1, or 0 for none.
    slots: SharedBytes,
}

impl Handles {
    /// `count` empty slots.
    pub(super) fn new(count: u32) -> Self {
        Self {
            slots: SharedBytes::zeroed(4 * count as usize),
        }
    }

    fn at(index: u32) -> usize {
        4 * index as usize
    }

    /// The handle in a slot; `None` if it is empty or there is no such slot.
    pub(super) fn get(&self, index: u32) -> Option<u32> {
        let slot = self.slots.load(Self::at(index), 4)?;
        u32::try_from(slot).ok()?.checked_sub(1)
    }

    /// Sets the handle of a slot; `E2BIG` past the end.
    pub(super) fn set(&self, index: u32, handle: u32) -> Result<(), Errno> {
        let slot = handle.checked_add(1).ok_or(Errno::EBADF)?;
        let stored = self.slots.store(Self::at(index), 4, slot.into());
        stored.ok_or(Errno::E2BIG)
    }

    /// Clears a slot; `E2BIG` past the end, `ENOENT` if it is empty.
    pub(super) fn remove(&self, index: u32) -> Result<(), Errno> {
        match self.slots.update(Self::at(index), 4, |_| 0) {
            None => Err(Errno::E2BIG),
            Some(0) => Err(Errno::ENOENT),
            Some(_) => Ok(()),
        }
    }
}
