//! Local storage of objects that exist only during an event.

use super::state::Machine;
use crate::vm::maps::{Kind, MapHandle};
use crate::vm::memory::Address;

impl Machine {
    /// Notes that an object owns storage in a map. Storage of objects in kernel memory stays
    /// until they are freed; all other storage is deleted at the end of the event.
    pub(in crate::vm) fn note_owner(&mut self, map: MapHandle, owner: u64) {
        if !Address::is_kernel_memory(owner) {
            self.run.event_storage.note(map, owner);
        }
    }

    /// Deletes the storage of objects that only the ended event had.
    pub(super) fn remove_event_storage(&mut self) {
        for (map, owner) in self.run.event_storage.take() {
            if let Some(Kind::Storage(storage)) = self.map(map).map(|map| map.kind()) {
                // A program may have deleted it.
                let _ = storage.remove(owner);
            }
        }
    }
}
