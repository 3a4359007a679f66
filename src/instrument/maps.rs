//! The maps that recording adds to a program's own, and what lies where in them.
//!
//! | map | type | what it is for |
//! |---|---|---|
//! | `state` | per-CPU array, one element | the next sequence number, the depth, what was lost |
//! | `scratch` | per-CPU array, an element for each depth | the firing in the making |
//! | `ring` | ring buffer | the firings that are complete |
//! | `targets` | hash, by tgid | whose firings are recorded, unless all are |
//!
//! They are shared by all programs of an object.

use std::sync::Arc;

use super::firing::{self, CONTEXT_UNIT};
use crate::program::MapDef;
use crate::spec::{MapType, limits};
use crate::util::{MapId, ReadError, Reader};

/// How a program is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// The program's number in its firings.
    pub number: u32,
    /// Bytes of the context that are recorded, where the program's type leaves it open
    /// (tracepoints: the size of the event's record).
    pub context_len: u32,
    /// Whether it runs for every process, not only for those in the map `targets`.
    pub all: bool,
}

/// The maps of a program that is recorded: its own, then those that recording adds.
#[derive(Debug, Clone)]
pub struct RecordMaps {
    /// All of them.
    pub maps: Arc<[MapDef]>,
    /// What a CPU has to remember: see [`RecordState`].
    pub state: MapId,
    /// The firings in the making.
    pub scratch: MapId,
    /// The firings.
    pub ring: MapId,
    /// The processes (tgid, a `u32`) that are recorded; values (a `u32`) mean nothing.
    pub targets: MapId,
}

/// The most processes that can be recorded at a time.
const TARGETS: u32 = 10_240;

impl RecordMaps {
    /// Adds the maps to those of an object, with `ring_bytes` (a power of two and a
    /// multiple of the page size) for firings.
    #[must_use]
    pub fn add(maps: &Arc<[MapDef]>, ring_bytes: u32) -> Self {
        let next = |number: usize| MapId(u32::try_from(maps.len() + number).unwrap_or(u32::MAX));
        let added = [
            MapDef::new("rec_state", MapType::PercpuArray, 4, state::SIZE, 1),
            MapDef::new(
                "rec_scratch",
                MapType::PercpuArray,
                4,
                scratch::SIZE,
                scratch::DEPTHS,
            ),
            MapDef::new("rec_ring", MapType::Ringbuf, 0, 0, ring_bytes),
            MapDef::new("rec_targets", MapType::Hash, 4, 4, TARGETS),
        ];
        Self {
            maps: maps.iter().cloned().chain(added).collect(),
            state: next(0),
            scratch: next(1),
            ring: next(2),
            targets: next(3),
        }
    }
}

/// What a CPU's element of the map `state` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordState {
    /// Firings that have begun.
    pub begun: u64,
    /// Firings that ran, but found no room in the ring buffer.
    pub lost: u64,
    /// Firings that did not run, for too many were under way on the CPU.
    pub skipped: u64,
}

impl RecordState {
    /// Reads a CPU's value.
    ///
    /// # Errors
    /// When there are too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let word = |at: u32| Reader::at(bytes, at as usize).u64();
        Ok(Self {
            begun: word(state::SEQUENCE)?,
            lost: word(state::LOST)?,
            skipped: word(state::SKIPPED)?,
        })
    }
}

/// What lies where in the value of `state`: words of 64 bits.
pub(super) mod state {
    pub(in crate::instrument) const SEQUENCE: u32 = 0;
    pub(in crate::instrument) const DEPTH: u32 = 8;
    pub(in crate::instrument) const LOST: u32 = 16;
    pub(in crate::instrument) const SKIPPED: u32 = 24;
    pub(in crate::instrument) const SIZE: u32 = 32;
}

/// What lies where in a value of `scratch`: whether it is in use, what a tail call hands
/// over, then the firing as it goes to the ring buffer, the log at its end.
///
/// An entry's place is the log's length modulo [`LOG`](scratch::LOG), so that no test for
/// the end is needed at the sites, and none doubles the states that a verifier walks; that
/// a log was too long is seen when it is done.
pub(super) mod scratch {
    use super::*;

    /// Firings that can be under way on a CPU.
    pub(in crate::instrument) const DEPTHS: u32 = 4;
    /// Bytes of a value, the most that a per-CPU map can have.
    pub(in crate::instrument) const SIZE: u32 = limits::PER_CPU_MAX;
    /// Bytes of a log, a power of two. What is left is for the context and for the end of
    /// an entry that begins just before this.
    pub(in crate::instrument) const LOG: u32 = 16 << 10;
    pub(in crate::instrument) const BUSY: u32 = 0;
    /// What the program that a tail call leads to has to know, a word of 64 bits: `handover`.
    pub(in crate::instrument) const HANDOVER: u32 = 8;
    pub(in crate::instrument) const FIRING: u32 = 16;
    /// How long the log is, a word of 64 bits.
    pub(in crate::instrument) const LOG_LEN: u32 = FIRING + firing::offset::LOG_LEN;

    /// Where the log begins, in a firing with so many bytes of context.
    pub(in crate::instrument) const fn log_start(context_len: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "it is 8")]
        let unit = CONTEXT_UNIT as u32;
        FIRING + firing::offset::CONTEXT + context_len.next_multiple_of(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_added_maps_follow_the_programs_own() {
        let own: Arc<[MapDef]> = [MapDef::new("hist", MapType::Array, 4, 8, 32)].into();
        let added = RecordMaps::add(&own, 1 << 20);
        let name = |id: MapId| added.maps[id.index()].name.as_str();
        assert_eq!(name(MapId(0)), "hist");
        let ids = [added.state, added.scratch, added.ring, added.targets];
        assert_eq!(
            ids.map(name),
            ["rec_state", "rec_scratch", "rec_ring", "rec_targets"]
        );
    }

    #[test]
    fn a_cpu_tells_what_it_lost() {
        let bytes: Vec<u8> = [9u64, 1, 2, 3]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let state = RecordState::parse(&bytes).unwrap();
        assert_eq!((state.begun, state.lost, state.skipped), (9, 2, 3));
        assert!(RecordState::parse(&bytes[..31]).is_err());
    }
}
