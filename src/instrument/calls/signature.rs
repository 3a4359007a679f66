//! What a call takes and gives, in the words of recording.

use smallvec::SmallVec;

use crate::isa::Reg;

/// What happens to a call in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Class {
    /// It is left out: all that it gives is on the tape.
    World,
    /// The same, but it did something to the world, so its arguments are logged.
    Effect,
    /// It is made, and what it gives is overridden by the tape.
    Own,
    /// It is made, and what it gives needs no tape: it follows from what the program has.
    Plain,
}

/// What an argument is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Role {
    /// Nothing: a context, a size, a kernel object.
    Silent,
    /// The map.
    Map,
    /// A number, given away.
    Number,
    /// Memory that the callee reads.
    Given(Extent),
    /// Memory that the callee fills.
    Filled(Extent),
    /// A ring-buffer record that goes out now.
    Submitted,
}

/// How much memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Extent {
    /// A key of the map in the arguments.
    Key,
    /// A value of that map.
    Value,
    /// So many bytes.
    Fixed(u32),
    /// As many as the next argument says.
    Next,
}

/// What `r0` is when a call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) enum Returns {
    /// Nothing that may be read.
    Nothing,
    /// A number.
    Number,
    /// A value of the map, or the map that it holds.
    Value,
    /// A ring-buffer record, of as many bytes as the second argument says.
    Record,
    /// Other memory that is not the world's.
    Memory,
    /// Memory of the run's own, which needs no log.
    Private,
    /// A kernel object or memory of the kernel.
    Kernel,
}

/// A function of the program that is called before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instrument) struct Callback {
    /// The argument that has its address.
    pub(in crate::instrument) function: Reg,
    /// What it gets, in `r1` and following.
    pub(in crate::instrument) passes: &'static [Passed],
}

/// What a callback gets.
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

/// What a call takes and gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::instrument) struct Signature {
    pub(in crate::instrument) class: Class,
    /// Of `r1` and following.
    pub(in crate::instrument) roles: SmallVec<[Role; 5]>,
    pub(in crate::instrument) returns: Returns,
    pub(in crate::instrument) callback: Option<Callback>,
}
