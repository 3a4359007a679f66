//! Objects that own storage, and how long they do.

use super::handle::MapHandle;
use super::machine::Machine;
use super::maps::Kind;
use super::memory::Address;

impl Machine {
    /// An object has storage in a map now. What belongs to the kernel's memory stays until
    /// it is freed; all else goes with the event.
    pub(super) fn note_owner(&mut self, map: MapHandle, owner: u64) {
        if !Address::is_kernel_memory(owner) {
            self.passing.note(map, owner);
        }
    }

    /// The event is over.
    pub(super) fn forget_owners(&mut self) {
        for (map, owner) in self.passing.take() {
            if let Some(Kind::Storage(storage)) = self.map(map).map(|map| map.kind()) {
                // A program may have deleted it.
                let _ = storage.remove(owner);
            }
        }
    }
}
