//! The inputs and outputs of a call, as recording needs them.

use smallvec::SmallVec;

use crate::isa::Reg;
use crate::spec::CallReplay;
pub(in crate::instrument) use crate::spec::call::Extent;
use crate::spec::call::{CallSpec, Effects, ResultKind};

/// How an argument is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Role {
    /// Not at all: a context, a size, a kernel object.
    Silent,
    /// The map.
    Map,
    /// A number passed to the callee.
    Number,
    /// Memory that the callee reads.
    Given(Extent),
    /// Memory that the callee fills.
    Filled(Extent),
    /// A ring-buffer record that is submitted.
    Submitted,
}

/// `r0` after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Returns {
    /// Not readable.
    Nothing,
    /// A number.
    Number,
    /// A value of the map, or its inner map.
    Value,
    /// A ring-buffer record of the size in the second argument.
    Record,
    /// Other memory of the program's own.
    Memory,
    /// Memory private to the run, which is not logged.
    Private,
    /// A kernel object or kernel memory.
    Kernel,
}

impl Returns {
    /// What a call returns that a replay treats so.
    ///
    /// # Errors
    /// Why it can't be recorded.
    pub(super) fn of(call: &CallSpec, replay: CallReplay) -> Result<Self, &'static str> {
        Ok(match call.result.kind {
            ResultKind::Nothing => Self::Nothing,
            ResultKind::Signed | ResultKind::Unsigned => Self::Number,
            ResultKind::MapValue => Self::Value,
            _ if replay == CallReplay::Repeat => Self::Private,
            ResultKind::Kernel => Self::Kernel,
            ResultKind::Memory if call.effects.contains(Effects::ACQUIRES) => Self::Record,
            ResultKind::Memory if replay == CallReplay::Override => Self::Memory,
            // A session's cookie, for example: what is there are inputs, as in all kernel memory.
            ResultKind::Memory => Self::Kernel,
        })
    }
}

/// A function of the program that the callee calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) struct Callback {
    /// The argument that holds its address.
    pub(in crate::instrument) function: Reg,
    /// Its arguments, from `r1`.
    pub(in crate::instrument) passes: &'static [Passed],
}

/// An argument of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Passed {
    /// A number.
    Number,
    /// The map.
    Map,
    /// A key of the map.
    Key,
    /// A value of the map.
    Value,
    /// This argument of the call.
    Argument(Reg),
}

/// The inputs and outputs of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::instrument) struct Signature {
    pub(in crate::instrument) replay: CallReplay,
    /// The roles of `r1` and following.
    pub(in crate::instrument) roles: SmallVec<[Role; 5]>,
    pub(in crate::instrument) returns: Returns,
    pub(in crate::instrument) callback: Option<Callback>,
}
