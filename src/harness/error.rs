//! What can go wrong between a test and its programs.

use thiserror::Error;

use crate::object::ObjectError;
use crate::util::Errno;
use crate::vm::Fault;
use crate::vm::events::EventError;
use crate::vm::maps::MapError;
use crate::vm::memory::SpaceFull;

/// The result of what a test does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that a test can run into, with what, where and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An object that can't be opened or relocated.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A map that can't be made.
    #[error(transparent)]
    MapCreate(#[from] MapError),
    /// A program stopped before its end.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// An event that can't be built.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The machine has no room for another object.
    #[error(transparent)]
    Space(#[from] SpaceFull),
    /// No program of this name.
    #[error("no program '{name}'; there are: {there}")]
    NoProgram {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        there: String,
    },
    /// No map of this name.
    #[error("no map '{name}'; there are: {there}")]
    NoMap {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        there: String,
    },
    /// No helper of this name.
    #[error("Linux 6.18 has no helper '{0}'")]
    NoHelper(String),
    /// A program that has nothing to attach to.
    #[error("program '{program}' can't be attached: {why}")]
    Attach {
        /// The program.
        program: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A key or value of another size than the map's.
    #[error("map '{map}': its {what} has {wanted} bytes, {given} given")]
    Size {
        /// The map.
        map: String,
        /// `key` or `value`.
        what: &'static str,
        /// Bytes in the map.
        wanted: usize,
        /// Bytes of the type or slice that was given.
        given: usize,
    },
    /// What the kernel would answer to an operation on a map.
    #[error("map '{map}': {what}: {errno}")]
    MapOperation {
        /// The map.
        map: String,
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// An operation that this kind of map does not have.
    #[error("map '{map}' is {found}, {wanted} wanted")]
    MapKind {
        /// The map.
        map: String,
        /// Its kind.
        found: String,
        /// What the operation needs.
        wanted: &'static str,
    },
}

/// Names for a message.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}
