//! Slots that hold addresses of kernel objects, without a lock.

use super::super::memory::SharedBytes;
use crate::util::Errno;

/// For each index the address of an object, or 0. Memory is zeroed pages until used.
#[derive(Debug)]
pub(super) struct Slots(SharedBytes);

impl Slots {
    /// So many slots, all empty.
    pub(super) fn new(count: u32) -> Self {
        Self(SharedBytes::zeroed(8 * count as usize))
    }

    const fn at(index: u32) -> usize {
        8 * index as usize
    }

    /// The object in a slot; `None` where it is empty or there is no such slot.
    pub(super) fn get(&self, index: u32) -> Option<u64> {
        self.0
            .load(Self::at(index), 8)
            .filter(|object| *object != 0)
    }

    /// Puts an object into a slot; `E2BIG` past the end.
    pub(super) fn set(&self, index: u32, object: u64) -> Result<(), Errno> {
        self.0.store(Self::at(index), 8, object).ok_or(Errno::E2BIG)
    }

    /// Empties a slot; what was in it.
    pub(super) fn take(&self, index: u32) -> Option<u64> {
        self.0
            .update(Self::at(index), 8, |_| 0)
            .filter(|object| *object != 0)
    }

    /// Whether some slot holds this object.
    pub(super) fn contains(&self, object: u64) -> bool {
        (0..self.0.len() / 8).any(|slot| self.0.load(8 * slot, 8) == Some(object))
    }
}
