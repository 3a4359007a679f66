//! Storage that goes with the event under way: that of a socket that an event brings along.

use smallvec::SmallVec;

use super::handle::MapHandle;

/// Maps, and in each an owner that is there for one event only.
#[derive(Debug, Default)]
pub(super) struct Passing(SmallVec<[(MapHandle, u64); 1]>);

impl Passing {
    /// An owner has storage in a map.
    pub fn note(&mut self, map: MapHandle, owner: u64) {
        let noted = (map, owner);
        if !self.0.contains(&noted) {
            self.0.push(noted);
        }
    }

    /// All of them, which are forgotten.
    pub fn take(&mut self) -> impl Iterator<Item = (MapHandle, u64)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
