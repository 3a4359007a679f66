//! Lock-free slots for addresses of kernel objects.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::memory::zeroed;
use crate::util::Errno;

/// The address of an object per index, or 0. Untouched pages use no memory.
#[derive(Debug)]
pub(super) struct Slots(Box<[AtomicU64]>);

impl Slots {
    /// `count` empty slots.
    pub(super) fn new(count: u32) -> Self {
        Self(zeroed(count as usize))
    }

    fn slot(&self, index: u32) -> Option<&AtomicU64> {
        self.0.get(index as usize)
    }

    /// The object in a slot; `None` if it is empty or there is no such slot.
    pub(super) fn get(&self, index: u32) -> Option<u64> {
        let object = self.slot(index)?.load(Ordering::Relaxed);
        (object != 0).then_some(object)
    }

    /// Sets the object of a slot; `E2BIG` past the end.
    pub(super) fn set(&self, index: u32, object: u64) -> Result<(), Errno> {
        let slot = self.slot(index).ok_or(Errno::E2BIG)?;
        slot.store(object, Ordering::Relaxed);
        Ok(())
    }

    /// Clears a slot and returns its object.
    pub(super) fn take(&self, index: u32) -> Option<u64> {
        let object = self.slot(index)?.swap(0, Ordering::SeqCst);
        (object != 0).then_some(object)
    }

    /// Whether any slot holds this object.
    pub(super) fn contains(&self, object: u64) -> bool {
        let mut slots = self.0.iter();
        slots.any(|slot| slot.load(Ordering::Relaxed) == object)
    }
}
