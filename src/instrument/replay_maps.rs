//! The maps that a replay adds to a program's own, and their layout.
//!
//! | map | type | purpose |
//! |---|---|---|
//! | `recorded_log` | array, one element | the log that the recorded form wrote, to be read |
//! | `log` | array, one element | the log that the replay form writes |
//!
//! Both logs have the same entries at the same positions as long as both forms do the same, so
//! one number, the current length of the log, is the position in both. All programs of a
//! machine share the maps; one of them runs at a time.

use std::sync::Arc;

use super::maps::scratch;
use crate::program::{Initial, MapDef};
use crate::spec::MapType;
use crate::util::MapId;

/// The maps of a replay form: its own, then the recorded log and the replay's log. Before each
/// run, write a firing's log to the first; after it, read the second.
#[derive(Debug, Clone)]
pub struct ReplayMaps {
    /// All maps.
    pub maps: Arc<[MapDef]>,
    /// The recorded log, which the replay reads.
    pub recorded_log: MapId,
    /// The log that the replay writes.
    pub log: MapId,
}

impl ReplayMaps {
    /// Offset of the log in the recorded log's value. [`END`](Self::END) follows it.
    pub const RECORDED_AT: usize = recorded_log::DATA as usize;
    /// The end of a recorded log: not a site's number.
    pub const END: [u8; 2] = [0xff; 2];
    /// Offset of a 64-bit word in the recorded log's value, initially zero. If the program
    /// reaches another site than was recorded, it is set to one more than the position of that
    /// site in the log; no more inputs are read from then on.
    pub const STOPPED_AT: usize = recorded_log::STOPPED as usize;
    /// Offset of the replay's log length, a 64-bit word, initially zero.
    pub const LOG_LEN_AT: usize = scratch::LOG_LEN as usize;
    /// Offset of the replay's log.
    pub const LOG_AT: usize = scratch::log_start(0) as usize;
    /// The largest size of a log in bytes.
    pub const ROOM: usize = scratch::LOG as usize;

    /// Adds the maps to those of an object and empties its prog arrays.
    #[must_use]
    pub fn add(maps: &Arc<[MapDef]>) -> Self {
        Self::add_leading(maps, |_, _| false)
    }

    /// Adds the maps for programs whose tail calls are replayed: entries of prog arrays for
    /// which `leads` is true stay, and name the program's [following
    /// form](super::Plan::replay_following).
    #[must_use]
    pub fn add_leading(maps: &Arc<[MapDef]>, leads: impl Fn(MapId, &str) -> bool) -> Self {
        let next = |number: usize| MapId(u32::try_from(maps.len() + number).unwrap_or(u32::MAX));
        let mut recorded = MapDef::new("recorded_log", MapType::Array, 4, recorded_log::SIZE, 1);
        // Positions after the log have no site's number.
        recorded.initial = vec![Initial::Bytes {
            key: vec![0; 4],
            value: vec![0xff; recorded_log::SIZE as usize].into(),
        }];
        let log = MapDef::new("replay_log", MapType::Array, 4, scratch::SIZE, 1);
        let own = (0..).map(MapId).zip(maps.iter().cloned());
        let own = own.map(|(id, mut map)| {
            map.initial.retain_mut(|entry| match entry {
                Initial::Program { name, .. } => {
                    let leads = leads(id, name);
                    *name = following(name);
                    leads
                }
                _ => true,
            });
            map
        });
        Self {
            maps: own.chain([recorded, log]).collect(),
            recorded_log: next(0),
            log: next(1),
        }
    }
}

/// The name of a program's form for prog arrays: both forms are in one machine.
pub(super) fn following(program: &str) -> String {
    format!("{program} (by a tail call)")
}

/// Offsets in the value of the recorded log.
///
/// After the log's part is another one of the same size, which is never written: a program that
/// has diverged reads there and finds no site.
pub(super) mod recorded_log {
    use super::scratch;

    pub(in crate::instrument) const STOPPED: u32 = 0;
    pub(in crate::instrument) const DATA: u32 = 8;
    /// Added to the position in the log once the program has diverged.
    pub(in crate::instrument) const DIVERGED: u32 = scratch::LOG;
    /// The number of positions, including those after a divergence.
    pub(in crate::instrument) const POSITIONS: u32 = 2 * scratch::LOG;
    /// An entry may begin at the last position.
    pub(in crate::instrument) const SIZE: u32 = DATA + POSITIONS + scratch::SIZE - scratch::LOG;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_added_maps_follow_the_programs_own() {
        let own: Arc<[MapDef]> = [MapDef::new("hist", MapType::Array, 4, 8, 32)].into();
        let added = ReplayMaps::add(&own);
        let name = |id: MapId| added.maps[id.index()].name.as_str();
        assert_eq!(
            [MapId(0), added.recorded_log, added.log].map(name),
            ["hist", "recorded_log", "replay_log"]
        );
    }
}
