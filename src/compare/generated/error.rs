//! Why generated programs can't be compared at all.

use thiserror::Error;

use crate::compare::live::LiveError;
use crate::compare::recording::WriteError;
use crate::compare::replay::ReplayError;
use crate::isa::AsmError;
use crate::kernel::attach::AttachError;
use crate::kernel::{KernelError, NoVerdict};
use crate::util::Errno;

/// Why programs could not be compared at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GeneratedError {
    /// The kernel gave no verdict on a program, or could not create a map.
    #[error(transparent)]
    NoVerdict(#[from] NoVerdict),
    /// A command of `bpf(2)` failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// An operation on a map failed.
    #[error("cannot access the recorder's map: {0}")]
    Map(Errno),
    /// A map of the recorder is missing or has unexpected contents.
    #[error("the recorder's map is missing or invalid: a bug in bpflab")]
    NoMap,
    /// A program can't be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The outputs of programs can't be read.
    #[error(transparent)]
    Live(#[from] Box<LiveError>),
    /// The recording can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The recording can't be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// One of bpflab's own programs failed to load.
    #[error("bpflab's own program failed to load: {0}")]
    Own(String),
}

impl From<LiveError> for GeneratedError {
    fn from(error: LiveError) -> Self {
        Self::Live(Box::new(error))
    }
}

impl From<Errno> for GeneratedError {
    fn from(errno: Errno) -> Self {
        Self::Map(errno)
    }
}

impl From<AsmError> for GeneratedError {
    fn from(error: AsmError) -> Self {
        Self::Own(error.to_string())
    }
}

impl GeneratedError {
    /// Whether it would be possible elsewhere: with other rights, or another kernel.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::NoVerdict(none) => none.is_unavailable(),
            Self::Attach(error) => error.is_unavailable(),
            Self::Live(error) => error.is_unavailable(),
            Self::Kernel(error) => error.is_unavailable(),
            Self::Map(errno) => *errno == Errno::EPERM,
            _ => false,
        }
    }
}
