//! The table of a [`Space`](super::Space) from regions to host addresses.

use std::mem;
use std::sync::{Mutex, PoisonError};

use super::address::Address;
use super::region::Region;
use super::shared::SharedBytes;

/// Tables of spaces that were dropped, all zeros again. A new one would have to be cleared as a
/// whole, 512 KB, which shows in the time of loading a small program.
static SPARE: Mutex<Vec<SharedBytes>> = Mutex::new(Vec::new());

/// How many tables are kept.
const SPARES: usize = 8;

/// For each slot, the offset from addresses to host addresses ([`Space::deltas`]).
///
/// [`Space::deltas`]: super::Space::deltas
#[derive(Debug)]
pub(super) struct Deltas {
    table: SharedBytes,
    /// Entries from here on are 0.
    used: usize,
}

impl Deltas {
    /// A table of zeros.
    pub(super) fn new() -> Self {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self {
            table: spare.unwrap_or_else(|| SharedBytes::zeroed(8 * Address::NUMBERS)),
            used: 0,
        }
    }

    pub(super) const fn table(&self) -> &SharedBytes {
        &self.table
    }

    /// The entry of the next slot, which has not been used.
    pub(super) fn add(&mut self, address: Address, region: &Region) {
        self.used = self.used.max(usize::from(address.region()) + 1);
        self.set(address, Some(region));
    }

    /// Changes the entry of a slot that was [added](Self::add).
    pub(super) fn set(&self, address: Address, region: Option<&Region>) {
        debug_assert!(usize::from(address.region()) < self.used, "not added");
        let host = region.and_then(Region::host_address);
        let delta = host.map_or(0, |host| host.wrapping_sub(address.register()));
        // There is an entry for each slot.
        let _ = self
            .table
            .store(8 * usize::from(address.region()), 8, delta);
    }

    /// Moves the entry of a region whose address changed to another one of the same slot.
    pub(super) fn follow(&self, from: Address, to: Address) {
        let at = 8 * usize::from(from.region());
        let delta = self.table.load(at, 8).filter(|delta| *delta != 0);
        if let Some(delta) = delta {
            let host = delta.wrapping_add(from.register());
            let _ = self.table.store(at, 8, host.wrapping_sub(to.register()));
        }
    }
}

impl Drop for Deltas {
    /// Keeps the table for another space.
    fn drop(&mut self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARES {
            self.table.clear_words(0..self.used);
            spare.push(mem::replace(&mut self.table, SharedBytes::zeroed(0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The number of entries that are not 0.
    fn entries(deltas: &Deltas) -> usize {
        let bytes = deltas.table().to_vec();
        assert_eq!(bytes.len(), 8 * Address::NUMBERS);
        let entries = bytes.as_chunks::<8>().0.iter();
        entries.filter(|entry| **entry != [0; 8]).count()
    }

    /// Whatever was in the tables before.
    #[test]
    fn a_new_table_is_zero() {
        for slots in [3, 700, 1] {
            let mut all: Vec<_> = (0..2 * SPARES).map(|_| Deltas::new()).collect();
            for deltas in &mut all {
                assert_eq!(entries(deltas), 0);
                for slot in 0..slots {
                    let block = SharedBytes::zeroed(8);
                    let region = Region::bytes("block", Arc::new(block));
                    deltas.add(Address::new(slot, 0), &region);
                }
                assert_eq!(entries(deltas), usize::from(slots));
            }
        }
    }
}
