//! Objects that own storage and are there for one event only: the socket that an event
//! brings along.

use smallvec::SmallVec;

use super::handle::MapHandle;
use super::machine::Machine;
use super::maps::Kind;
use super::memory::Address;

/// Storage that goes with the event under way.
#[derive(Debug, Default)]
pub(super) struct Passing(SmallVec<[(MapHandle, u64); 1]>);

impl Machine {
    /// An object has storage in a map now. What belongs to the kernel's memory stays until
    /// it is freed; all else goes with the event.
    pub(super) fn note_owner(&mut self, map: MapHandle, owner: u64) {
        let noted = (map, owner);
        if !Address::is_kernel_memory(owner) && !self.passing.0.contains(&noted) {
            self.passing.0.push(noted);
        }
    }

    /// The event is over.
    pub(super) fn forget_owners(&mut self) {
        for (map, owner) in std::mem::take(&mut self.passing.0) {
            if let Some(Kind::Storage(storage)) = self.map(map).map(|map| map.kind()) {
                // A program may have deleted it.
                let _ = storage.remove(owner);
            }
        }
    }
}
