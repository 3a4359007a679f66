//! The maps that recording adds to a program's own, and their layout.
//!
//! | map | type | purpose |
//! |---|---|---|
//! | `state` | per-CPU array, one element | next sequence number, depth, counts of lost firings |
//! | `scratch` | per-CPU array, an element per depth | the firing being recorded |
//! | `ring` | ring buffer | complete firings |
//! | `targets` | hash, by tgid | the recorded processes, unless all are |
//!
//! All programs of an object share them.

use std::sync::Arc;

use super::firing::{self, CONTEXT_UNIT};
use crate::program::MapDef;
use crate::spec::{MapType, limits};
use crate::util::{MapId, ReadError, Reader};

/// Options for recording a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// The program's number in its firings.
    pub number: u32,
    /// Size in bytes of the recorded context, if the program's type leaves it open
    /// (tracepoints: the size of the event's record).
    pub context_len: u32,
    /// Whether it records every process, not only those in the map `targets`.
    pub all: bool,
}

/// The maps of a recorded program: its own, then those that recording adds.
#[derive(Debug, Clone)]
pub struct RecordMaps {
    /// All maps.
    pub maps: Arc<[MapDef]>,
    /// The state of each CPU: see [`RecordState`].
    pub state: MapId,
    /// The firings being recorded.
    pub scratch: MapId,
    /// The ring buffer of complete firings.
    pub ring: MapId,
    /// The recorded processes (tgid, a `u32`); the values (a `u32`) have no meaning.
    pub targets: MapId,
}

/// The largest number of processes that can be recorded at a time.
const TARGETS: u32 = 10_240;

impl RecordMaps {
    /// Adds the maps to those of an object. The ring buffer gets `ring_bytes` bytes, a power of
    /// two and a multiple of the page size.
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

/// A CPU's element of the map `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordState {
    /// Firings that have started.
    pub begun: u64,
    /// Firings that ran but are lost, since the ring buffer was full.
    pub lost: u64,
    /// Firings that were skipped, since too many were running on the CPU.
    pub skipped: u64,
}

impl RecordState {
    /// Reads a CPU's value.
    ///
    /// # Errors
    /// There are too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let word = |at: u32| Reader::at(bytes, at as usize).u64();
        Ok(Self {
            begun: word(state::SEQUENCE)?,
            lost: word(state::LOST)?,
            skipped: word(state::SKIPPED)?,
        })
    }
}

/// Offsets in the value of `state`: words of 64 bits.
pub(super) mod state {
    pub(in crate::instrument) const SEQUENCE: u32 = 0;
    pub(in crate::instrument) const DEPTH: u32 = 8;
    pub(in crate::instrument) const LOST: u32 = 16;
    pub(in crate::instrument) const SKIPPED: u32 = 24;
    pub(in crate::instrument) const SIZE: u32 = 32;
}

/// Offsets in a value of `scratch`: the busy flag, the word for tail calls, then the firing as
/// it is sent to the ring buffer, with the log at its end.
///
/// An entry's position is the log's length modulo [`LOG`](scratch::LOG). So sites need no
/// bounds check, which would double the states that a verifier explores; whether the log was
/// too long is checked at the end.
pub(super) mod scratch {
    use super::*;

    /// The number of firings that can run at the same time on a CPU.
    pub(in crate::instrument) const DEPTHS: u32 = 4;
    /// Size of a value in bytes, the limit of a per-CPU map.
    pub(in crate::instrument) const SIZE: u32 = limits::PER_CPU_MAX;
    /// Size of a log in bytes, a power of two. The rest of the value is for the context and for
    /// the end of an entry that starts just before the limit.
    pub(in crate::instrument) const LOG: u32 = 16 << 10;
    pub(in crate::instrument) const BUSY: u32 = 0;
    /// The word for the target of a tail call, 64 bits: see `handover`.
    pub(in crate::instrument) const HANDOVER: u32 = 8;
    pub(in crate::instrument) const FIRING: u32 = 16;
    /// The log's length, 64 bits.
    pub(in crate::instrument) const LOG_LEN: u32 = FIRING + firing::offset::LOG_LEN;

    /// Offset of the log in a firing with `context_len` bytes of context.
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
