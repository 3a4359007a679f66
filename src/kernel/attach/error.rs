//! Errors of attaching.

use thiserror::Error;

use crate::kernel::error::{KernelError, NoVerdict};
use crate::util::ReadError;

/// Why a program is not attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// This kernel or machine can't do it.
    #[error("{place}: not available here: {why}")]
    Unavailable {
        /// The attach point.
        place: String,
        /// What is missing, and which kernel or option has it.
        why: String,
    },
    /// The section's name does not give a full attach target.
    #[error("program {program}: section '{section}' has no attach target: {wanted}")]
    Unclear {
        /// The program.
        program: String,
        /// Its section.
        section: String,
        /// What the name should look like.
        wanted: &'static str,
    },
    /// The attach target does not exist.
    #[error("{place}: {why}")]
    NoSuchPlace {
        /// The attach point.
        place: String,
        /// What was looked up, and where.
        why: String,
    },
    /// The attach target does not support an option.
    #[error("{place}: {why}")]
    Option {
        /// The attach point.
        place: String,
        /// The option, and what to do instead.
        why: &'static str,
    },
    /// A file whose functions or USDT probes are needed is malformed.
    #[error("{path}: {why}")]
    Binary {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The kernel refused.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// A program needed for attaching was not loaded.
    #[error("{0}")]
    NotLoaded(#[from] NoVerdict),
}

impl AttachError {
    /// Whether the machine or permissions are at fault, and not the program or the target: the
    /// exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::NotLoaded(none) => none.is_unavailable(),
            Self::Kernel(error) => error.is_unavailable(),
            _ => false,
        }
    }

    pub(super) fn unavailable(place: impl ToString, why: impl Into<String>) -> Self {
        Self::Unavailable {
            place: place.to_string(),
            why: why.into(),
        }
    }

    pub(super) fn no_such_place(place: impl ToString, why: impl Into<String>) -> Self {
        Self::NoSuchPlace {
            place: place.to_string(),
            why: why.into(),
        }
    }
}

/// Why a file can't be read.
#[derive(Debug, Error)]
pub(super) enum BinaryError {
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("{what}: {error}")]
    Short {
        /// The truncated part.
        what: &'static str,
        error: ReadError,
    },
    #[error("{0}")]
    Other(String),
}
