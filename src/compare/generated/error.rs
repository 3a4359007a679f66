//! Why programs made up can't be compared at all.

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
    /// The kernel did not judge a program, or made no map.
    #[error(transparent)]
    NoVerdict(#[from] NoVerdict),
    /// A command of `bpf(2)` failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// An operation on a map failed.
    #[error("a map of the recorder: {0}")]
    Map(Errno),
    /// A map of the recorder is not there, or holds something else.
    #[error("a map of the recorder is not there: a mistake in bpflab")]
    NoMap,
    /// A program can't be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// What programs put out can't be read.
    #[error(transparent)]
    Live(#[from] Box<LiveError>),
    /// The recording can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The recording can't be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The kernel refuses a program of bpflab's own.
    #[error("a program of bpflab's own: {0}")]
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
