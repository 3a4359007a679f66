//! A function that programs call: its arguments, its result and its effects.

use bitflags::bitflags;

use super::super::helpers::{Caller, Scope};
use super::super::kfuncs::Set;
use super::super::replay::CallReplayRule;
use super::iterator::{IteratorKind, IteratorStep};
use super::precondition::{DynptrUse, Extent, Precondition, Region};
use super::register::RegKind;
use crate::isa::low32;

bitflags! {
    /// Effects of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Effects: u16 {
        /// Acquires a reference, which is the result (`is_acquire_function`, `KF_ACQUIRE`).
        /// `map_lookup_elem` on a map of sockets does, too.
        const ACQUIRES = 1 << 0;
        /// The result is the argument cast to another type, and refers to the same object
        /// (`is_ptr_cast_function`).
        const CASTS = 1 << 1;
        /// Invalidates packet pointers (`bpf_helper_changes_pkt_data`,
        /// `net/core/filter.c`; `is_kfunc_pkt_changing`).
        const CHANGES_PACKET = 1 << 2;
        /// Calls a subprogram before it returns.
        const CALLS_BACK = 1 << 3;
        /// Schedules a subprogram for a later call.
        const CALLS_BACK_LATER = 1 << 4;
        /// Releases the reference of an argument.
        const RELEASES = 1 << 5;
        /// May sleep: only for programs that may sleep.
        const MIGHT_SLEEP = 1 << 6;
        /// May crash the machine.
        const DESTRUCTIVE = 1 << 7;
        /// Keeps the caller's registers.
        const FASTCALL = 1 << 8;
    }
}

/// What a call demands of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// Whether null may be passed. Few preconditions then
    /// [apply to it](Precondition::applies_to_null).
    pub nullable: bool,
    /// The preconditions, in the order of their checks.
    pub preconditions: &'static [Precondition],
}

impl ArgSpec {
    /// Whether this is one of the preconditions.
    #[must_use]
    pub fn demands(&self, precondition: Precondition) -> bool {
        self.preconditions.contains(&precondition)
    }

    /// Whether any value may be passed, if it is initialised.
    #[must_use]
    pub fn takes_anything(&self) -> bool {
        matches!(self.preconditions, [] | [Precondition::Initialised])
    }

    /// Whether registers of this type may be passed. An argument that
    /// [takes anything](Self::takes_anything) has no types.
    #[must_use]
    pub fn takes(&self, kind: RegKind) -> bool {
        self.preconditions.iter().any(|one| match one {
            Precondition::Is(types) => types.types.iter().any(|ty| ty.kind == kind),
            _ => false,
        })
    }

    /// Whether the argument is the size of the memory in the previous argument.
    #[must_use]
    pub fn is_size(&self) -> bool {
        let is_size = |one: &Precondition| matches!(one, Precondition::Size { .. });
        self.preconditions.iter().any(is_size)
    }

    /// The memory that the call accesses through the argument.
    #[must_use]
    pub fn region(&self) -> Option<Region> {
        self.preconditions.iter().find_map(|one| match one {
            Precondition::Memory(region) => Some(*region),
            _ => None,
        })
    }

    /// Whether the call releases a reference in the argument.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.demands(Precondition::Released)
            || self.demands(Precondition::Dynptr(DynptrUse::Releases))
    }

    /// Whether the call initialises a dynptr in the argument.
    #[must_use]
    pub fn makes_dynptr(&self) -> bool {
        self.demands(Precondition::Dynptr(DynptrUse::Initialises))
    }
}

/// The result of a call, in `r0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSpec {
    /// Its kind.
    pub kind: ResultKind,
    /// Whether a pointer may be null.
    pub nullable: bool,
}

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// None: `r0` can't be read.
    Nothing,
    /// A number; a negative one is an errno.
    Signed,
    /// Any other number, or a structure in `r0`.
    Unsigned,
    /// A value of the map in the arguments, or its inner map.
    MapValue,
    /// Memory of the program's own: a record, a part of a dynptr, an iterator's element.
    Memory,
    /// A kernel object, or memory of the kernel.
    Kernel,
}

/// The programs that may call a function.
#[derive(Clone, Copy, Debug)]
pub enum Callers {
    /// Those of any of these scopes.
    Scopes(&'static [Scope]),
    /// Those that the kfunc's set is registered for.
    Set(Set),
}

impl Callers {
    /// Whether they include this one. Build options, capabilities, license, allow-lists and
    /// sleeping are not checked.
    #[must_use]
    pub fn include(&self, caller: &Caller<'_>) -> bool {
        match self {
            Self::Scopes(scopes) => scopes.iter().any(|scope| scope.covers(caller)),
            Self::Set(set) => set.covers(caller),
        }
    }
}

/// A function that programs call: a helper, by one of its prototypes, or a kfunc.
#[derive(Clone, Copy, Debug)]
pub struct CallSpec {
    /// The kernel's name: `bpf_map_lookup_elem`.
    pub name: &'static str,
    /// The arguments, in `r1` and following.
    pub arguments: &'static [ArgSpec],
    /// The result.
    pub result: ResultSpec,
    /// The effects.
    pub effects: Effects,
    /// The kind of iterator that it works on, and what it does to it.
    pub iterator: Option<(IteratorKind, IteratorStep)>,
    /// The programs that may call it.
    pub callers: Callers,
    /// How a recording treats a call.
    pub replay: CallReplayRule,
}

impl CallSpec {
    /// The position of the map in the arguments.
    #[must_use]
    pub fn map_argument(&self) -> Option<usize> {
        let is_map = |argument: &ArgSpec| argument.demands(Precondition::Map);
        self.arguments.iter().position(is_map)
    }

    /// The size of a region in the argument at this position, in a call with these arguments;
    /// `map` has the sizes of a key and of a value of the map in the arguments. `None` if they
    /// don't say it.
    #[must_use]
    pub fn extent(
        region: Region,
        position: usize,
        args: &[u64; 5],
        map: Option<(u32, u32)>,
    ) -> Option<usize> {
        Some(match region.extent {
            Extent::Key => map?.0 as usize,
            Extent::Value => map?.1 as usize,
            Extent::Bytes(size) => size as usize,
            // A `u32` in most prototypes.
            Extent::Next => low32(*args.get(position + 1)?) as usize,
            Extent::Type(_) => return None,
        })
    }
}
