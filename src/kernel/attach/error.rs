//! Why a program is not attached.

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
        /// Where the program was to be attached.
        place: String,
        /// What is missing, and what has it.
        why: String,
    },
    /// The section's name does not say where.
    #[error(
        "program {program}: its section '{section}' does not say where it is attached: {wanted}"
    )]
    Unclear {
        /// The program.
        program: String,
        /// Its section.
        section: String,
        /// What the name should look like.
        wanted: &'static str,
    },
    /// There is no such place.
    #[error("{place}: {why}")]
    NoSuchPlace {
        /// Where the program was to be attached.
        place: String,
        /// What was looked for, and where.
        why: String,
    },
    /// The place takes no such option.
    #[error("{place}: {why}")]
    Option {
        /// Where the program was to be attached.
        place: String,
        /// The option, and what to do instead.
        why: &'static str,
    },
    /// A file whose functions or markers were asked for is not what it should be.
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
    /// A program that attaching needs was not loaded.
    #[error("{0}")]
    NotLoaded(#[from] NoVerdict),
}

impl AttachError {
    /// Whether it is the machine or the rights that are missing, and not the program or the
    /// place: the exit code is 3 then.
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
        /// The part that ends too early.
        what: &'static str,
        error: ReadError,
    },
    #[error("{0}")]
    Other(String),
}
