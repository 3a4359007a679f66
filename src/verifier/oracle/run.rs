//! What a run has, as whoever runs programs says it.

use crate::isa::Reg;
use crate::util::{MapId, Pc};

/// A run that is about to execute an instruction. Frames are numbered from the
/// outermost, 0. Addresses are what registers hold.
pub trait Run {
    /// The instruction.
    fn pc(&self) -> Pc;

    /// How many functions are being executed; at least 1.
    fn depth(&self) -> usize;

    /// The first instruction of a frame's function.
    fn start(&self, frame: usize) -> Pc;

    /// The call by which a frame was entered.
    fn callsite(&self, frame: usize) -> Option<Pc>;

    /// Whether a helper called it.
    fn is_callback(&self, frame: usize) -> bool;

    /// A register of a frame. Of frames that wait for a call's end only those are asked
    /// for that the call leaves alone.
    fn reg(&self, frame: usize, reg: Reg) -> u64;

    /// Eight bytes of a frame's stack as a number, `8 * (slot + 1)` below its end.
    fn slot(&self, frame: usize, slot: usize) -> Option<u64>;

    /// The program's context.
    fn context(&self) -> u64;

    /// The packet, if there is one.
    fn packet(&self) -> Option<PacketEnds>;

    /// What stands for one of the program's maps.
    fn map(&self, map: MapId) -> Option<u64>;

    /// Where in a map's values an address lies. Of which map is not said if it came out
    /// of a map of maps.
    fn value(&self, map: Option<MapId>, address: u64) -> Option<ValuePlace>;

    /// What stands for the function that begins at an instruction.
    fn function(&self, start: Pc) -> u64;

    /// Whether so many bytes can be read there.
    fn is_readable(&self, address: u64, len: u64) -> bool;
}

/// Where a packet lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketEnds {
    /// Where the metadata before it begins.
    pub meta: u64,
    /// Where it begins.
    pub data: u64,
    /// Where it ends.
    pub end: u64,
}

/// A place among the values of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuePlace {
    /// Bytes from the first value's start.
    pub offset: i64,
    /// From one value's start to the next.
    pub span: u64,
}
