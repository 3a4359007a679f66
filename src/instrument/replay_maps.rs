//! The maps that a replay adds to a program's own, and what lies where in them.
//!
//! | map | type | what it is for |
//! |---|---|---|
//! | `tape` | array, one element | the log that the recorded form wrote, to be read |
//! | `log` | array, one element | the log that the replay form writes |
//!
//! Both logs have the same entries at the same places as long as both forms do the same,
//! so one number, the length of the log so far, says where in both the program is. They
//! are shared by all programs of a machine, of which one runs at a time.

use std::sync::Arc;

use super::maps::scratch;
use crate::program::{Initial, MapDef};
use crate::spec::MapType;
use crate::util::MapId;

/// The maps of a program that replays: its own, then tape and log. Whoever runs it writes a
/// firing's log to the tape before, and reads the other afterwards.
#[derive(Debug, Clone)]
pub struct ReplayMaps {
    /// All of them.
    pub maps: Arc<[MapDef]>,
    /// What is replayed.
    pub tape: MapId,
    /// What the replay does.
    pub log: MapId,
}

impl ReplayMaps {
    /// Where on the tape a log is put. Behind it stands [`END`](Self::END).
    pub const TAPE_AT: usize = tape::DATA as usize;
    /// What is behind a tape's last entry: the number of no site.
    pub const END: [u8; 2] = [0xff; 2];
    /// Where on the tape a word of 64 bits is set that is zero before: one more than the
    /// place in the log at which the program came to another site than the tape has. From
    /// there on the tape said nothing to it.
    pub const STOPPED_AT: usize = tape::STOPPED as usize;
    /// Where in the log its length is, a word of 64 bits that is zero before.
    pub const LOG_LEN_AT: usize = scratch::LOG_LEN as usize;
    /// Where in the log its bytes are.
    pub const LOG_AT: usize = scratch::log_start(0) as usize;
    /// The most bytes of a log.
    pub const ROOM: usize = scratch::LOG as usize;

    /// Adds the maps to those of an object, whose prog arrays are empty.
    #[must_use]
    pub fn add(maps: &Arc<[MapDef]>) -> Self {
        Self::add_leading(maps, |_, _| false)
    }

    /// The same for programs whose tail calls are replayed: an entry of a prog array is kept
    /// if that is so of the map and the program, and names the program's
    /// [following form](super::Plan::replay_following).
    #[must_use]
    pub fn add_leading(maps: &Arc<[MapDef]>, leads: impl Fn(MapId, &str) -> bool) -> Self {
        let next = |number: usize| MapId(u32::try_from(maps.len() + number).unwrap_or(u32::MAX));
        let mut tape = MapDef::new("replay_tape", MapType::Array, 4, tape::SIZE, 1);
        // What no log reaches is the number of no site.
        tape.initial = vec![Initial::Bytes {
            key: vec![0; 4],
            value: vec![0xff; tape::SIZE as usize].into(),
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
            maps: own.chain([tape, log]).collect(),
            tape: next(0),
            log: next(1),
        }
    }
}

/// What the form of a program is called that prog arrays hold: both are in one machine.
pub(super) fn following(program: &str) -> String {
    format!("{program} (by a tail call)")
}

/// What lies where in the value of `tape`.
///
/// Behind the log's part is another one of the same size, in which nothing is ever written:
/// a program that has left the tape reads there, and finds no site of its own.
pub(super) mod tape {
    use super::scratch;

    pub(in crate::instrument) const STOPPED: u32 = 0;
    pub(in crate::instrument) const DATA: u32 = 8;
    /// What a place in the log has added that leads behind the tape.
    pub(in crate::instrument) const NOWHERE: u32 = scratch::LOG;
    /// The places, those of nowhere included.
    pub(in crate::instrument) const PLACES: u32 = 2 * scratch::LOG;
    /// An entry may begin at the last place.
    pub(in crate::instrument) const SIZE: u32 = DATA + PLACES + scratch::SIZE - scratch::LOG;
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
            [MapId(0), added.tape, added.log].map(name),
            ["hist", "replay_tape", "replay_log"]
        );
    }
}
