//! Errors of the test API.

mod convert;

use std::error::Error as StdError;
use std::fmt;

pub(crate) use convert::converts;
use thiserror::Error;

use super::unverified::{UnverifiedProgram, describe_unverified};
use crate::btf::SetError;
use crate::object::ObjectError;
use crate::util::Errno;
use crate::vm::events::EventError;
use crate::vm::maps::MapError;
use crate::vm::memory::SpaceFull;
use crate::vm::world::NetError;
use crate::vm::{AddMapError, CpuError, EngineKind, Fault, InjectError, KernelError};

/// The result of a call of the test API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of the test API; messages say what is wrong, where, and what to do.
///
/// The error of every other function of the library converts into it, so that `?` works on each
/// of them in a test that returns [`Result<()>`](Result):
///
/// ```
/// use bpflab::isa::assemble;
///
/// fn slots(text: &str) -> bpflab::Result<usize> {
///     Ok(assemble(text)?.len())
/// }
///
/// assert_eq!(slots("r0 = 0\nexit").unwrap(), 2);
/// assert!(slots("r0 =").is_err());
/// ```
///
/// `Debug` is the message, too, since `main` and tests print that.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// The object can't be opened or relocated.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The map can't be created.
    #[error(transparent)]
    MapCreate(#[from] MapError),
    /// A program faulted.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// A part of the mocked network is invalid.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The event can't be built.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A kernel object can't be created, found or changed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The machine has no room for another object.
    #[error(transparent)]
    Space(#[from] SpaceFull),
    /// The CPU does not exist, or is in use.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// No program of this name.
    #[error("no program '{name}'; there are: {there}")]
    NoProgram {
        /// The requested name.
        name: String,
        /// The existing names.
        there: String,
    },
    /// No map of this name.
    #[error("no map '{name}'; there are: {there}")]
    NoMap {
        /// The requested name.
        name: String,
        /// The existing names.
        there: String,
    },
    /// The injection is invalid: these calls can't be made to fail.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// No helper of this name.
    #[error("Linux 6.18 has no helper '{0}'")]
    NoHelper(String),
    /// No kfunc of this name.
    #[error("Linux 6.18 has no kfunc '{0}', and no loaded program calls one")]
    NoKfunc(String),
    /// A deferred callback can't be called, or too many are due.
    #[error("deferred callback: {0}")]
    Deferred(String),
    /// Programs are rejected or unjudged.
    #[error(
        "{}\nVm::unverified() loads unverified programs, too, and runs them with each access \
         checked",
        describe_unverified(.0)
    )]
    Unverified(Vec<UnverifiedProgram>),
    /// The raw program or its memory can't be used.
    #[error("raw program: {0}")]
    RawProgram(String),
    /// The engine can't run the program.
    #[error("program '{program}' can't run on engine {engine}: {why}")]
    Engine {
        /// The program.
        program: String,
        /// The engine.
        engine: EngineKind,
        /// Why not.
        why: String,
    },
    /// The program has no attach target.
    #[error("program '{program}' can't be attached: {why}")]
    Attach {
        /// The program.
        program: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The event can't run a program because none was ever attached.
    #[error(
        "event '{event}' runs no program: none was ever attached; call attach_all(), or attach \
         one of: {there}"
    )]
    NothingAttached {
        /// The event.
        event: String,
        /// The loaded programs.
        there: String,
    },
    /// The kernel would refuse to attach the program there.
    #[error("program '{program}' can't be attached to {place}: {errno}: {why}")]
    Refused {
        /// The program.
        program: String,
        /// The attach point.
        place: String,
        /// The kernel's error.
        errno: Errno,
        /// Why.
        why: &'static str,
    },
    /// The program reads past the end of the event's context.
    #[error(
        "program '{program}' reads {needed} bytes of its context, {event} has {there}: {errno}"
    )]
    Context {
        /// The program.
        program: String,
        /// The event.
        event: String,
        /// The bytes that the program reads, from the context's start.
        needed: u32,
        /// The bytes of the event's context.
        there: u32,
        /// The kernel's error when the program is attached.
        errno: Errno,
    },
    /// The key or value does not have the map's size.
    #[error("map '{map}': its {what} has {wanted} bytes, {given} given")]
    Size {
        /// The map.
        map: String,
        /// `key` or `value`.
        what: &'static str,
        /// Bytes in the map.
        wanted: usize,
        /// Bytes of the given type or slice.
        given: usize,
    },
    /// A map operation that fails as in the kernel.
    #[error("map '{map}': {what}: {errno}")]
    MapOperation {
        /// The map.
        map: String,
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
    /// The object's BTF does not give the type of the map's values.
    #[error(
        "map '{0}': the object's BTF does not say what type its values have: \
         declare it with __type(value, …)"
    )]
    NoType(String),
    /// There is no such field, or it can't have this value.
    #[error("map '{map}': field '{path}': {problem}")]
    Field {
        /// The map.
        map: String,
        /// The field's path.
        path: String,
        /// What is wrong.
        problem: Box<SetError>,
    },
    /// No global variable of this name.
    #[error("no global variable '{name}'; there are: {there}")]
    NoGlobal {
        /// The requested name.
        name: String,
        /// The existing names.
        there: String,
    },
    /// The map's kind does not have this operation.
    #[error("map '{map}' is {found}, not {wanted}")]
    MapKind {
        /// The map.
        map: String,
        /// Its kind.
        found: String,
        /// The kind that the operation needs.
        wanted: &'static str,
    },
    /// A scheduler can't do what a test asks for ([`Vm::sched_ext`](super::Vm::sched_ext)).
    #[error("sched_ext: {0}")]
    SchedExt(String),
    /// An error of another part of the library, or of the test ([`Error::other`]).
    #[error(transparent)]
    Other(Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// An error that a test defines, or one of another library.
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

/// The message, and each source that it does not include.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            let why = error.to_string();
            if !text.contains(&why) {
                text.push_str("\ncaused by: ");
                text.push_str(&why);
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

impl From<AddMapError> for Error {
    fn from(error: AddMapError) -> Self {
        match error {
            AddMapError::Space(full) => full.into(),
            AddMapError::Cpu(error) => error.into(),
        }
    }
}

/// Joins names for a message.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error whose message does not include its source.
    #[derive(Debug, Error)]
    #[error("no results")]
    struct Outer(#[source] Inner);

    #[derive(Debug, Error)]
    #[error("the disk is full")]
    struct Inner;

    /// An error whose message includes its source.
    #[derive(Debug, Error)]
    #[error("giving up: {0}")]
    struct Whole(#[source] Outer);

    #[test]
    fn debug_is_the_message() {
        let error = Error::NoHelper("bpf_none".to_owned());
        assert_eq!(format!("{error:?}"), "Linux 6.18 has no helper 'bpf_none'");
        assert_eq!(format!("{error:#?}"), error.to_string());
    }

    #[test]
    fn debug_adds_the_sources_that_the_message_lacks() {
        let error = Error::other(Outer(Inner));
        assert_eq!(error.to_string(), "no results");
        assert_eq!(
            format!("{error:?}"),
            "no results\ncaused by: the disk is full"
        );
        let error = Error::other(Whole(Outer(Inner)));
        assert_eq!(
            format!("{error:?}"),
            "giving up: no results\ncaused by: the disk is full"
        );
        let plain = Error::other("only a text");
        assert_eq!(format!("{plain:?}"), "only a text");
    }

    #[test]
    fn another_error_is_still_there() {
        let Error::Other(error) = Error::from(Errno::ENOENT) else {
            panic!("not Other");
        };
        assert_eq!(error.downcast_ref(), Some(&Errno::ENOENT));
    }
}
