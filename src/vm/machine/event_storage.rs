//! Which local storage to delete at the end of the event: that of the event's own socket.

use smallvec::SmallVec;

use crate::vm::maps::MapHandle;

/// Maps with local storage of objects that exist only during the event, and those objects.
#[derive(Debug, Default)]
pub(super) struct EventStorage(SmallVec<[(MapHandle, u64); 1]>);

impl EventStorage {
    /// Notes that an object owns storage in a map.
    pub fn note(&mut self, map: MapHandle, owner: u64) {
        let noted = (map, owner);
        if !self.0.contains(&noted) {
            self.0.push(noted);
        }
    }

    /// Takes all entries.
    pub fn take(&mut self) -> impl Iterator<Item = (MapHandle, u64)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
