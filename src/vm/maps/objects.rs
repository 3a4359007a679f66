//! Lock-free slots for addresses of kernel objects.

use super::super::memory::SharedBytes;
use crate::util::Errno;

/// The address of an object per index, or 0. Untouched pages use no memory.
#[derive(Debug)]
pub(super) struct Slots(SharedBytes);

impl Slots {
    /// `count` empty slots.
    pub(super) fn new(count: u32) -> Self {
        Self(SharedBytes::zeroed(8 * count as usize))
    }

    const fn at(index: u32) -> usize {
        8 * index as usize
    }

    /// The object in a slot; `None` if it is empty or there is no such slot.
    pub(super) fn get(&self, index: u32) -> Option<u64> {
        self.0
            .load(Self::at(index), 8)
            .filter(|object| *object != 0)
    }

    /// Sets the object of a slot; `E2BIG` past the end.
    pub(super) fn set(&self, index: u32, object: u64) -> Result<(), Errno> {
        self.0.store(Self::at(index), 8, object).ok_or(Errno::E2BIG)
    }

    /// Clears a slot and returns its object.
    pub(super) fn take(&self, index: u32) -> Option<u64> {
        self.0
            .update(Self::at(index), 8, |_| 0)
            .filter(|object| *object != 0)
    }

    /// Whether any slot holds this object.
    pub(super) fn contains(&self, object: u64) -> bool {
        (0..self.0.len() / 8).any(|slot| self.0.load(8 * slot, 8) == Some(object))
    }
}
