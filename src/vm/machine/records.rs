//! Reserved ring-buffer records, and everything else that a program has to release.

use std::sync::Arc;

use super::run_state::ReservedRecord;
use super::state::Machine;
use crate::vm::maps::{MapHandle, Record};
use crate::vm::memory::{Pointer, Region, SharedBytes, SpaceFull};

impl Machine {
    /// Maps a reserved ring-buffer record at an address of its own, until
    /// [`unmap_record`](Self::unmap_record).
    pub(in crate::vm) fn map_record(
        &mut self,
        map: MapHandle,
        area: Arc<SharedBytes>,
        record: Record,
    ) -> Result<u64, SpaceFull> {
        let name = self.shared.maps.get(map.index()).ok_or(SpaceFull)?;
        let name = name.record_name.clone();
        let window = record.at..record.at + record.len;
        let region = self.space.insert(Region::window(name, area, window))?;
        let address = region.plus(record.at as u64);
        self.run.reserved.push(ReservedRecord {
            map,
            record,
            region,
            address,
        });
        Ok(address)
    }

    /// Unmaps the reserved record at an address.
    pub(in crate::vm) fn unmap_record(&mut self, address: u64) -> Option<ReservedRecord> {
        let at = self
            .run
            .reserved
            .iter()
            .rposition(|reserved| reserved.address == address)?;
        let reserved = self.run.reserved.remove(at);
        self.space.remove(reserved.region);
        Some(reserved)
    }

    /// Ring-buffer records that programs have reserved and neither submitted nor discarded,
    /// and the references that the running program has not released. The verifier rejects
    /// programs that can end with any.
    #[must_use]
    pub fn unreleased(&self) -> Vec<Pointer> {
        if self.run.reserved.is_empty() && self.holds_nothing() {
            return Vec::new();
        }
        let records = self.run.reserved.iter().map(|reserved| reserved.address);
        let mut addresses: Vec<_> = records.chain(self.unreleased_sockets()).collect();
        addresses.sort_unstable();
        let records = addresses.into_iter().map(|address| self.pointer(address));
        records.chain(self.still_held()).collect()
    }

    /// The number of references that the running program holds: to records, sockets, iterators
    /// and objects.
    pub(crate) fn count_references(&self) -> usize {
        let held = &self.run.held;
        self.run.reserved.len()
            + self.unreleased_sockets().len()
            + held.references.len()
            + held.iterators.len()
    }

    /// Whether the running program holds no references to sockets or from kfuncs.
    fn holds_nothing(&self) -> bool {
        self.run.sockets.holds_nothing() && self.run.held.is_empty()
    }
}
