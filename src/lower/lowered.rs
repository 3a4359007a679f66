//! A program lowered: its operations and what they refer to.

use std::sync::Arc;

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
    /// multiple of 8: these have to be zero when it starts.
    pub stack: u16,
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
    /// The context's pointers into the packet may be others afterwards.
    pub changes_packet: bool,
}

/// A map whose values a program accesses.
#[derive(Debug, Clone)]
pub struct BoundMap {
    /// The map in the machine.
    pub handle: MapHandle,
    /// The map, which keeps its values alive.
    pub map: Arc<dyn Map>,
    /// What added to the address of a value gives its host address, wrapping.
    pub delta: u64,
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

    /// The maps whose values it accesses by [`Place::MapValue`](super::Place::MapValue).
    #[must_use]
    pub fn maps(&self) -> &[BoundMap] {
        &self.maps
    }

    /// What it expects of its context.
    #[must_use]
    pub const fn context(&self) -> &ContextUse {
        &self.context
    }
}
