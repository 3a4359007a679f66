//! A lowered program: its operations and what they refer to.

use std::sync::Arc;

use super::LowerError;
use super::fuse::fused::Fused;
use super::logarithm::found::Logarithm;
use super::note::Notes;
use super::op::{Op, Target};
use crate::analysis::Effect;
use crate::program::Program;
use crate::spec::helpers;
use crate::util::{HelperId, Pc};
use crate::vm::MapHandle;
use crate::vm::helpers::Body;
use crate::vm::kfuncs;
use crate::vm::maps::Map;
use crate::vm::memory::Pages;

/// A verified program as operations, bound to a machine.
///
/// Only [`lower`](super::lower) creates one, from a
/// [`Verified`](crate::verifier::Verified). This entitles an engine to omit the checks that
/// its [`MemRef`](super::MemRef)s omit, if the run [may start](super::Lowered::may_start).
#[derive(Debug, Clone)]
pub struct Lowered {
    pub(super) program: Arc<Program>,
    /// [`Space::id`](crate::vm::memory::Space::id) of the machine.
    pub(super) space: u64,
    pub(super) ops: Vec<Op>,
    /// For each operation the registers that it reads and writes.
    pub(super) effects: Vec<Effect>,
    /// For each operation its instruction.
    pub(super) pcs: Vec<Pc>,
    /// For each operation how many instructions precede it in the program.
    pub(super) ordinals: Vec<u32>,
    pub(super) functions: Vec<Function>,
    pub(super) helpers: Vec<Helper>,
    pub(super) maps: Vec<BoundMap>,
    pub(super) arena: Option<BoundArena>,
    pub(super) context: ContextUse,
    /// The number of CPUs in the machine's world at lowering.
    pub(super) cpus: u32,
    /// See [`Lowered::known`].
    pub(super) known: Vec<u8>,
    pub(super) reads_kernel: bool,
    pub(super) exceptions: Option<Exceptions>,
    /// For each operation its notes; empty if there are none.
    pub(super) notes: Vec<Notes>,
    /// Code that computes a binary logarithm, in order.
    pub(super) logarithms: Vec<Logarithm>,
    pub(super) overlay: Overlay,
}

/// The fused operations over the plain ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlay {
    /// The fused operations, each with the number of plain ones.
    pub fused: Vec<(Fused, u8)>,
    /// For each operation 1 + the index of the fused one that begins there, or 0; empty if
    /// nothing is fused.
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
    /// How many bytes below the frame pointer the function and the helpers that it calls
    /// access, a multiple of 8.
    pub stack: u16,
    /// Which of these bytes must be zero at the start, since they may be read before they
    /// are written: ranges of distances below the frame pointer, from the greater down to
    /// the smaller, both multiples of 8, in falling order. The other bytes are never read,
    /// except by the target of a tail call, which gets the frame: a program with tail calls
    /// has all of `stack` here in each function.
    pub zeroed: Box<[(u16, u16)]>,
    /// Whether the address of its frame may escape
    /// ([`EscapingFrames`](super::EscapingFrames)).
    pub frame_escapes: bool,
    /// The name of its frame in messages.
    pub frame_name: Arc<str>,
}

/// What a program calls, other than its own functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callee {
    /// The helper with this number.
    Helper(HelperId),
    /// A kfunc.
    Kfunc(kfuncs::Callee),
    /// The function of the program with this number, to which other programs are attached.
    Attached(u16),
}

/// A helper or kfunc that a program calls, or what runs when a function is called to which other
/// programs are attached.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Which one.
    pub callee: Callee,
    /// The body of a helper; none if only a mock implements it.
    pub body: Option<Body>,
    /// Whether the context's pointers, into the packet or to a socket, may change.
    pub moves_pointers: bool,
}

impl Helper {
    /// The helper's row in the table; none for anything else.
    pub(super) fn spec(&self) -> Option<&'static helpers::Helper> {
        match self.callee {
            Callee::Helper(id) => helpers::helper(id),
            Callee::Kfunc(_) | Callee::Attached(_) => None,
        }
    }
}

/// A map whose values a program accesses or looks up.
#[derive(Debug, Clone)]
pub struct BoundMap {
    /// The map in the machine.
    pub handle: MapHandle,
    /// The map, which keeps its values alive.
    pub map: Arc<dyn Map>,
    /// The difference that, added to a value's address, gives its host address, wrapping.
    /// Only for maps that some [`MemRef::MapValue`](super::MemRef::MapValue) names.
    pub delta: u64,
    /// The address of the value of element 0.
    pub first: u64,
    /// The distance between the addresses of consecutive values.
    pub span: u64,
    /// How a key maps to an element.
    pub keys: Keys,
}

/// Where a program continues after an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceptions {
    /// The index of the function whose result the program returns; without one it returns the
    /// exception's cookie.
    pub callback: Option<u16>,
}

/// The arena whose pointers a program casts.
#[derive(Debug, Clone)]
pub struct BoundArena {
    /// Its pages.
    pub pages: Arc<Pages>,
    /// The address that the program loads from where the low 32 bits are 0.
    pub region: u64,
    /// The upper half of the addresses in user space; 0 if they are not converted.
    pub user: u64,
}

/// How a key of a map maps to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The key is a 32-bit little-endian index of an element; all below `count` exist.
    Index {
        /// The number of elements.
        count: u32,
    },
    /// The same for each CPU: the element is `cpu * count + key`. The CPU is
    /// [`KnownValues`](super::KnownValues)`[`[`CPU`](super::CPU)`]`, and is one of the
    /// map's.
    PerCpuIndex {
        /// The number of elements for a CPU.
        count: u32,
    },
    /// By [`Map::lookup`] with a key of `size` bytes.
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

    /// The result of a look-up of this index on `cpu`: the address of the value, or 0.
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

    /// The result of a look-up of this key on `cpu`: the address of the value, or 0.
    #[must_use]
    pub fn at_key(&self, cpu: u64, key: &[u8]) -> u64 {
        // There are at most 4,096 CPUs.
        let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
        match self.map.lookup(cpu, key) {
            Ok(Some(element)) => self.address(element as u64),
            _ => 0,
        }
    }
}

/// What a program requires of its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextUse {
    /// The bytes that it must have.
    pub len: usize,
    /// Offset and size of the fields that must load as pointers, and whether they may be
    /// null.
    pub pointers: Vec<(u32, u32, bool)>,
}

impl Lowered {
    /// The same program with other programs attached to the functions that begin at `starts`: the
    /// engine decides what a call of such a function runs. What was derived from the operations
    /// stays true, since it holds whatever a called function does.
    ///
    /// # Errors
    /// [`LowerError::TooLarge`].
    pub(crate) fn with_attached(&self, starts: &[Pc]) -> Result<Self, LowerError> {
        let mut lowered = self.clone();
        for start in starts {
            // A function that is never called is not there.
            let Some(function) = lowered.function_at(*start) else {
                continue;
            };
            let helper = u16::try_from(lowered.helpers.len()).map_err(|_| LowerError::TooLarge)?;
            lowered.helpers.push(Helper {
                callee: Callee::Attached(function),
                body: None,
                moves_pointers: true,
            });
            // Both calls have the same effect on registers.
            for op in &mut lowered.ops {
                if *op == (Op::CallFunction { function }) {
                    *op = Op::CallHelper { helper };
                }
            }
        }
        Ok(lowered)
    }

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

    /// Whether an operation loads with [`MemRef::Kernel`](super::MemRef::Kernel).
    #[must_use]
    pub const fn reads_kernel(&self) -> bool {
        self.reads_kernel
    }

    /// The operations of a function.
    #[must_use]
    pub fn ops_of(&self, function: &Function) -> &[Op] {
        let range = function.entry as usize..function.end as usize;
        self.ops.get(range).unwrap_or_default()
    }

    /// All registers that the operations of a function read and write.
    #[cfg(feature = "jit")]
    pub(crate) fn registers_of(&self, function: &Function) -> Effect {
        let range = function.entry as usize..function.end as usize;
        let effects = self.effects.get(range).unwrap_or_default().iter();
        effects.fold(Effect::default(), |all, one| Effect {
            reads: all.reads.union(one.reads),
            writes: all.writes.union(one.writes),
        })
    }

    /// The instruction of an operation.
    #[must_use]
    pub fn pc(&self, op: Target) -> Pc {
        self.pcs.get(op as usize).copied().unwrap_or_default()
    }

    /// How many instructions precede an operation's in the program, where a 64-bit
    /// immediate counts as one. If an operation falls through, the next one's ordinal is
    /// one more, so an engine that counts instructions only adds where it jumps.
    #[must_use]
    pub fn ordinal(&self, op: Target) -> u32 {
        self.ordinals.get(op as usize).copied().unwrap_or_default()
    }

    /// The operation of an instruction; none for a dead one.
    #[must_use]
    pub fn op_at(&self, pc: Pc) -> Option<Target> {
        let found = self.pcs.binary_search(&pc).ok()?;
        Target::try_from(found).ok()
    }

    /// The reachable functions, in the order of the program.
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

    /// The helpers and kfuncs that it calls.
    #[must_use]
    pub fn helpers(&self) -> &[Helper] {
        &self.helpers
    }

    /// The maps that its [`MemRef::MapValue`](super::MemRef::MapValue)s and
    /// [`Op::Lookup`]s name.
    #[must_use]
    pub fn maps(&self) -> &[BoundMap] {
        &self.maps
    }

    /// The arena whose pointers it casts.
    #[must_use]
    pub const fn arena(&self) -> Option<&BoundArena> {
        self.arena.as_ref()
    }

    /// Where it continues after an exception; none if it throws none.
    #[must_use]
    pub const fn exceptions(&self) -> Option<Exceptions> {
        self.exceptions
    }

    /// The program's requirements on its context.
    #[must_use]
    pub const fn context(&self) -> &ContextUse {
        &self.context
    }

    /// The notes of an operation.
    #[must_use]
    pub fn note(&self, op: Target) -> Notes {
        self.notes.get(op as usize).copied().unwrap_or_default()
    }

    /// What computes binary logarithms, in order.
    #[cfg(feature = "jit")]
    pub(crate) fn logarithms(&self) -> &[Logarithm] {
        &self.logarithms
    }

    /// What computes a binary logarithm from this operation on. No fused operation spans its
    /// start or its end.
    #[cfg(feature = "jit")]
    pub(crate) fn logarithm(&self, op: Target) -> Option<&Logarithm> {
        let found = self.logarithms.binary_search_by_key(&op, |it| it.start);
        self.logarithms.get(found.ok()?)
    }

    /// The fused form of the operations from this one on, and how many it fuses;
    /// [`Fused`]'s module has the rules.
    #[must_use]
    pub fn fused(&self, op: Target) -> Option<(&Fused, u8)> {
        let index = *self.overlay.index.get(op as usize)?;
        let index = usize::try_from(index.checked_sub(1)?).ok()?;
        let (fused, n) = self.overlay.fused.get(index)?;
        Some((fused, *n))
    }
}
