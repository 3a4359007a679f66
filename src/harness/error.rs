//! What can go wrong between a test and its programs.

use thiserror::Error;

use super::unverified::{UnverifiedProgram, told};
use crate::btf::SetError;
use crate::object::ObjectError;
use crate::util::Errno;
use crate::vm::events::EventError;
use crate::vm::maps::MapError;
use crate::vm::memory::SpaceFull;
use crate::vm::world::NetError;
use crate::vm::{AddMapError, CpuError, EngineKind, Fault, InjectError, KernelError};

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
    /// A part of the mocked network that can't be.
    #[error(transparent)]
    Net(#[from] NetError),
    /// An event that can't be built.
    #[error(transparent)]
    Event(#[from] EventError),
    /// An object of the kernel that can't be made, found or changed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The machine has no room for another object.
    #[error(transparent)]
    Space(#[from] SpaceFull),
    /// A CPU that is not there, or can't be used for this.
    #[error(transparent)]
    Cpu(#[from] CpuError),
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
    /// Calls that can't be made to fail.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// No helper of this name.
    #[error("Linux 6.18 has no helper '{0}'")]
    NoHelper(String),
    /// No kernel function of this name.
    #[error("Linux 6.18 has no kernel function '{0}' for programs, and no program calls one")]
    NoKfunc(String),
    /// A callback that can't be called later, or too many of them.
    #[error("calling back later: {0}")]
    Deferred(String),
    /// Programs that are rejected or unjudged.
    #[error(
        "{}\nVm::unverified() loads unverified programs, too, and runs them with each access \
         checked",
        told(.0)
    )]
    Unverified(Vec<UnverifiedProgram>),
    /// An engine that can't run a program.
    #[error("program '{program}' can't run on engine {engine}: {why}")]
    Engine {
        /// The program.
        program: String,
        /// The engine.
        engine: EngineKind,
        /// Why not.
        why: String,
    },
    /// A program that has nothing to attach to.
    #[error("program '{program}' can't be attached: {why}")]
    Attach {
        /// The program.
        program: String,
        /// Why not, and what to do.
        why: String,
    },
    /// An event that can't run a program, since none was ever attached.
    #[error(
        "event '{event}' runs no program: none was ever attached; call attach_all(), or attach \
         one of: {there}"
    )]
    NothingAttached {
        /// The event.
        event: String,
        /// The programs that are loaded.
        there: String,
    },
    /// A program that the kernel does not take at a place.
    #[error("program '{program}' can't be attached to {place}: {errno}: {why}")]
    Refused {
        /// The program.
        program: String,
        /// The place.
        place: String,
        /// What the kernel says.
        errno: Errno,
        /// Why.
        why: &'static str,
    },
    /// A program that reads further into its context than the event has bytes.
    #[error(
        "program '{program}' reads {needed} bytes of its context, {event} has {there}: {errno}"
    )]
    Context {
        /// The program.
        program: String,
        /// The event.
        event: String,
        /// The bytes that the program may read, from the context's start.
        needed: u32,
        /// The bytes that there are.
        there: u32,
        /// What the kernel says when the program is attached.
        errno: Errno,
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
    /// A map whose object does not say what its values are.
    #[error(
        "map '{0}': the object's BTF does not say what type its values have: \
         declare it with __type(value, …)"
    )]
    NoType(String),
    /// A part of a value that is not there, or can't be what it is to be.
    #[error("map '{map}': field '{path}': {problem}")]
    Field {
        /// The map.
        map: String,
        /// The part.
        path: String,
        /// What is wrong.
        problem: Box<SetError>,
    },
    /// No global variable of this name.
    #[error("no global variable '{name}'; there are: {there}")]
    NoGlobal {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        there: String,
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

impl From<AddMapError> for Error {
    fn from(error: AddMapError) -> Self {
        match error {
            AddMapError::Space(full) => full.into(),
            AddMapError::Cpu(error) => error.into(),
        }
    }
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
