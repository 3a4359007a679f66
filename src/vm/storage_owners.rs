//! Local storage of objects that exist only during an event.

use super::handle::MapHandle;
use super::machine::Machine;
use super::maps::Kind;
use super::memory::Address;

impl Machine {
    /// Notes that an object owns storage in a map. Storage of objects in kernel memory stays
    /// until they are freed; all other storage is deleted at the end of the event.
    pub(super) fn note_owner(&mut self, map: MapHandle, owner: u64) {
        if !Address::is_kernel_memory(owner) {
            self.event_storage.note(map, owner);
        }
    }

    /// Deletes the storage of objects that only the ended event had.
    pub(super) fn remove_event_storage(&mut self) {
        for (map, owner) in self.event_storage.take() {
            if let Some(Kind::Storage(storage)) = self.map(map).map(|map| map.kind()) {
                // A program may have deleted it.
                let _ = storage.remove(owner);
            }
        }
    }
}
