//! A program lowered: its operations and what they refer to.

use std::sync::Arc;

use super::fuse::fused::Fused;
use super::note::Notes;
use super::op::{Op, Target};
use crate::program::Program;
use crate::util::{HelperId, Pc};
use crate::vm::MapHandle;
use crate::vm::helpers::Body;
use crate::vm::maps::Map;

/// A verified program as operations, bound to a machine.
///
/// Only [`lower`](super::lower) makes one, from a
/// [`Verified`](crate::verifier::Verified): whoever holds one may leave out the checks
/// that its [`Place`](super::Place)s leave out, if the run
/// [may start](super::Lowered::may_start).
#[derive(Debug)]
pub struct Lowered {
    pub(super) program: Arc<Program>,
    /// [`Space::id`](crate::vm::memory::Space::id) of the machine.
    pub(super) space: u64,
    pub(super) ops: Vec<Op>,
    /// For each operation the instruction that it stands for.
    pub(super) pcs: Vec<Pc>,
    /// For each operation how many instructions stand before it in the program.
    pub(super) ordinals: Vec<u32>,
    pub(super) functions: Vec<Function>,
    pub(super) helpers: Vec<Helper>,
    pub(super) maps: Vec<BoundMap>,
    pub(super) context: ContextUse,
    /// How many CPUs the machine's world had.
    pub(super) cpus: u32,
    /// See [`Lowered::known`].
    pub(super) known: Vec<u8>,
    /// For each operation what is known of it; empty where nothing is of any.
    pub(super) notes: Vec<Notes>,
    pub(super) overlay: Overlay,
}

/// Which operations may be executed as one.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// The fused operations, each with the number of plain ones.
    pub fused: Vec<(Fused, u8)>,
    /// For each operation 1 + the index of the fused one that begins there, or 0; empty
    /// where there are none.
    pub index: Vec<u32>,
}

/// A function of a program; the first one is the main program.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its first operation.
    pub entry: Target,
    /// The operation after its last.
    pub end: Target,
    /// Its first instruction.
    pub start: Pc,
    /// How many bytes below the frame pointer it and helpers that it calls touch, a
    /// multiple of 8.
    pub stack: u16,
    /// Which of them have to be zero when it starts, since they may be read before they
    /// are written: from so many bytes below the frame pointer (the greater number) down
    /// to so many, both multiples of 8, in falling order. What is in the others is seen
    /// by nobody, unless a tail call leaves the frame to another program: a program
    /// that has one has all of `stack` here in each function.
    pub zeroed: Box<[(u16, u16)]>,
    /// Whether others may know where its frame is ([`Lenders`](super::Lenders)).
    pub lends: bool,
    /// What messages call its frame.
    pub frame_name: Arc<str>,
}

/// A helper that a program calls.
#[derive(Debug, Clone, Copy)]
pub struct Helper {
    /// Its number.
    pub id: HelperId,
    /// Its body; none where only a mock could do it.
    pub body: Option<Body>,
    /// The context's pointers, into the packet or to a socket, may be others afterwards.
    pub moves_pointers: bool,
}

/// A map whose values a program accesses or looks up.
#[derive(Debug, Clone)]
pub struct BoundMap {
    /// The map in the machine.
    pub handle: MapHandle,
    /// The map, which keeps its values alive.
    pub map: Arc<dyn Map>,
    /// What added to the address of a value gives its host address, wrapping. Only for
    /// maps that some [`Place::MapValue`](super::Place::MapValue) names.
    pub delta: u64,
    /// The address of the value of element 0.
    pub first: u64,
    /// Address bytes from one value to the next.
    pub span: u64,
    /// How a key leads to an element.
    pub keys: Keys,
}

/// How a key of a map leads to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The key is a 32-bit number in little-endian order, and the element; there is one
    /// for each number below `count`.
    Index {
        /// How many there are.
        count: u32,
    },
    /// The same for each CPU: the element is `cpu * count + key`. The CPU is
    /// [`KnownValues`](super::KnownValues)`[`[`CPU`](super::CPU)`]`, and is one of the
    /// map's.
    PerCpuIndex {
        /// How many there are for a CPU.
        count: u32,
    },
    /// [`Map::lookup`] with so many bytes says it.
    Other {
        /// Bytes of a key.
        size: u32,
    },
}

impl BoundMap {
    /// The address of the value of an element.
    #[must_use]
    pub const fn address(&self, element: u64) -> u64 {
        self.first.wrapping_add(element.wrapping_mul(self.span))
    }

    /// What a look-up on `cpu` gives that finds this number under an index: the address
    /// of its value, or 0.
    #[must_use]
    pub fn at_index(&self, cpu: u64, index: u32) -> u64 {
        match self.keys {
            Keys::Index { count } if index < count => self.address(index.into()),
            Keys::PerCpuIndex { count } if index < count => {
                self.address(cpu.wrapping_mul(count.into()).wrapping_add(index.into()))
            }
            _ => 0,
        }
    }

    /// What a look-up of a key on `cpu` gives: the address of a value, or 0.
    #[must_use]
    pub fn at_key(&self, cpu: u64, key: &[u8]) -> u64 {
        // There are 4,096 CPUs at most.
        let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
        match self.map.lookup(cpu, key) {
            Ok(Some(element)) => self.address(element as u64),
            _ => 0,
        }
    }
}

/// What a program expects of its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextUse {
    /// Bytes that it must have.
    pub len: usize,
    /// Offset and size of the fields that have to load as pointers, and whether zero
    /// will do.
    pub pointers: Vec<(u32, u32, bool)>,
}

impl Lowered {
    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The operations. The last one does not fall through.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Those of a function.
    #[must_use]
    pub fn ops_of(&self, function: &Function) -> &[Op] {
        let range = function.entry as usize..function.end as usize;
        self.ops.get(range).unwrap_or_default()
    }

    /// The instruction that an operation stands for.
    #[must_use]
    pub fn pc(&self, op: Target) -> Pc {
        self.pcs.get(op as usize).copied().unwrap_or_default()
    }

    /// How many instructions stand before an operation's in the program, a 64-bit
    /// immediate being one. Where an operation falls through, the next one's is one
    /// more: an engine that counts instructions needs to add only where it jumps.
    #[must_use]
    pub fn ordinal(&self, op: Target) -> u32 {
        self.ordinals.get(op as usize).copied().unwrap_or_default()
    }

    /// The operation of an instruction; none for dead ones.
    #[must_use]
    pub fn op_at(&self, pc: Pc) -> Option<Target> {
        let found = self.pcs.binary_search(&pc).ok()?;
        Target::try_from(found).ok()
    }

    /// The functions that some path reaches, in the order of the program.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function that begins at an instruction.
    #[must_use]
    pub fn function_at(&self, start: Pc) -> Option<u16> {
        let found = self.functions.binary_search_by_key(&start, |f| f.start);
        u16::try_from(found.ok()?).ok()
    }

    /// The helpers that it calls.
    #[must_use]
    pub fn helpers(&self) -> &[Helper] {
        &self.helpers
    }

    /// The maps that its [`Place::MapValue`](super::Place::MapValue)s and
    /// [`Op::Lookup`]s name.
    #[must_use]
    pub fn maps(&self) -> &[BoundMap] {
        &self.maps
    }

    /// What it expects of its context.
    #[must_use]
    pub const fn context(&self) -> &ContextUse {
        &self.context
    }

    /// What is known of an operation.
    #[must_use]
    pub fn note(&self, op: Target) -> Notes {
        self.notes.get(op as usize).copied().unwrap_or_default()
    }

    /// As what the operations from this one on may be executed at once, and how many of
    /// them; the law is in [`Fused`]'s file.
    #[must_use]
    pub fn fused(&self, op: Target) -> Option<(Fused, u8)> {
        let index = *self.overlay.index.get(op as usize)?;
        let index = usize::try_from(index.checked_sub(1)?).ok()?;
        self.overlay.fused.get(index).copied()
    }
}
