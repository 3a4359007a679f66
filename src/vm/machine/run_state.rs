//! The state of a run.

use smallvec::SmallVec;

use super::event_storage::EventStorage;
use super::leak::Leak;
use super::objects::AcquiredResources;
use super::outcome::Nested;
use super::output_buffer::OutputBuffer;
use super::probed::Probed;
use super::sockets::RunSockets;
use crate::spec::ProgType;
use crate::vm::events::Placed;
use crate::vm::maps::{MapHandle, Record};
use crate::vm::memory::Address;

/// What lasts for one run: the program with its event, what it holds, and what it put out so
/// far. An event in the middle of the run has a state of its own.
#[derive(Default)]
pub(in crate::vm) struct RunState {
    pub(super) current: Option<Current>,
    /// Ring-buffer records that programs reserved, the latest one last.
    pub(super) reserved: SmallVec<[ReservedRecord; 2]>,
    /// Addresses of the `bpf_spin_lock`s that the program holds.
    pub(in crate::vm) locks: SmallVec<[u64; 1]>,
    /// Resources that the program acquired from kfuncs.
    pub(in crate::vm) held: AcquiredResources,
    /// The event's own socket, and acquired sockets.
    pub(super) sockets: RunSockets,
    /// Local storage of objects that exist only during the event.
    pub(super) event_storage: EventStorage,
    pub(in crate::vm) outputs: OutputBuffer,
    /// Outcomes of events in the middle of the run, until they are taken.
    pub(super) nested: Vec<Nested>,
    /// Loads of unmapped addresses that read 0 ([`probed`](crate::vm::Outcome::probed)).
    pub(super) probed: Probed,
    /// Uninitialised bytes that left programs.
    pub(super) leaks: Vec<Leak>,
}

/// A ring-buffer record that a program has reserved.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) struct ReservedRecord {
    /// The ring buffer.
    pub map: MapHandle,
    /// Position of the record in the map's data area.
    pub record: Record,
    /// The region that the program writes to.
    pub(super) region: Address,
    /// The address that the program got.
    pub(super) address: u64,
}

/// The running program, as far as helpers need to know it.
#[derive(Debug)]
pub struct Current {
    /// Its type.
    pub prog_type: ProgType,
    /// Its context, and the packet if it has one.
    pub placed: Placed,
}
