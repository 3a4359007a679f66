//! The values of a run, as provided by an engine.

use crate::btf::Btf;
use crate::isa::Reg;
use crate::util::{MapId, Pc, TypeId};

/// A run before its next instruction. Frames are numbered from the outermost, 0. Addresses
/// are the values that registers hold.
pub trait Run {
    /// The instruction.
    fn pc(&self) -> Pc;

    /// The number of active functions; at least 1.
    fn depth(&self) -> usize;

    /// The first instruction of a frame's function.
    fn start(&self, frame: usize) -> Pc;

    /// The call instruction that entered a frame.
    fn callsite(&self, frame: usize) -> Option<Pc>;

    /// Whether a helper called it.
    fn is_callback(&self, frame: usize) -> bool;

    /// A register of a frame. For outer frames, only callee-saved registers are queried.
    fn reg(&self, frame: usize, reg: Reg) -> u64;

    /// Eight bytes of a frame's stack, at `8 * (slot + 1)` below its end.
    fn slot(&self, frame: usize, slot: usize) -> Option<u64>;

    /// The program's context.
    fn context(&self) -> u64;

    /// The packet, if there is one.
    fn packet(&self) -> Option<PacketEnds>;

    /// The address that stands for one of the program's maps.
    fn map(&self, map: MapId) -> Option<u64>;

    /// The position of an address among a map's values. `map` is `None` for a map from a
    /// map of maps.
    fn value(&self, map: Option<MapId>, address: u64) -> Option<ValuePlace>;

    /// The address that stands for the function that begins at an instruction.
    fn function(&self, start: Pc) -> u64;

    /// Whether `len` bytes are readable there.
    fn is_readable(&self, address: u64, len: u64) -> bool;

    /// Whether the memory there was given back: the key of a callback that returned.
    fn is_freed(&self, address: u64) -> bool;

    /// The kernel object at an address, if it is known and has a type.
    fn object(&self, address: u64) -> Option<ObjectPlace>;

    /// The dynptr at an address, if there is one.
    fn dynptr(&self, address: u64) -> Option<HeldDynptr>;

    /// The iterator at an address, if there is one.
    fn iterator(&self, address: u64) -> Option<HeldIterator>;

    /// What the program holds.
    fn held(&self) -> Held;
}

/// A position in a kernel object.
#[derive(Debug, Clone)]
pub struct ObjectPlace {
    /// The types.
    pub btf: Btf,
    /// The object's type in them.
    pub ty: TypeId,
    /// The offset from the object's start, in bytes.
    pub offset: u64,
}

/// A dynptr of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldDynptr {
    /// The kind of its memory, as the verifier's log names it (`ringbuf`); `None` for a null
    /// dynptr.
    pub kind: Option<&'static str>,
}

/// An iterator of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldIterator {
    /// The name of its structure (`bpf_iter_num`).
    pub structure: &'static str,
    /// Whether it has no further elements.
    pub drained: bool,
}

/// What the program of a run has acquired and not released.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// The addresses of kernel objects to which it has references, one for each.
    pub references: Vec<u64>,
    /// The number of references, also to records, sockets and iterators.
    pub count: usize,
    /// The addresses of saved interrupt states, the last one last.
    pub interrupts: Vec<u64>,
    /// The nesting depth of RCU read sections.
    pub rcu: u32,
    /// How often it has disabled preemption.
    pub preempt: u32,
}

/// The addresses of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketEnds {
    /// The start of the metadata before it.
    pub meta: u64,
    /// The start of its data.
    pub data: u64,
    /// Its end.
    pub end: u64,
}

/// A position among the values of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuePlace {
    /// The offset from the start of the first value, in bytes.
    pub offset: i64,
    /// The distance between the starts of two values.
    pub span: u64,
}
