//! What can go wrong with a recording, and where.

use std::fmt;
use std::io;

use thiserror::Error;

use super::block::Version;

/// A place in a recording: a block and its first byte in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the block; 0 is that of the header.
    pub block: u64,
    /// Bytes from the start of the file.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} at byte {}", self.block, self.offset)
    }
}

/// Where a file ends that has no end: its recorder was killed, or it was not copied
/// whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff {
    /// The first block that is not there, or not whole.
    pub place: Place,
    /// How many bytes of it are there.
    pub left: u64,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, left } = self;
        write!(f, "cut off in {place}, of which {left} bytes are there")
    }
}

pub(super) type Result<T> = std::result::Result<T, RecordingError>;

/// Why a recording, or the rest of one, can't be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Another kind of file.
    #[error("no recording of bpflab: it does not begin with \\x89bpfrec\\n")]
    NotARecording,
    /// A later version that means something else by its bytes.
    #[error(
        "a recording of format {found}, which this bpflab does not know (it reads up to \
         {known}): a newer one is needed"
    )]
    Newer {
        /// The file's.
        found: Version,
        /// The last one that can be read.
        known: Version,
    },
    /// A block that matters and that a later version has put there.
    #[error("{place}: {what}, which this bpflab does not know: a newer one is needed")]
    Unknown {
        /// The block.
        place: Place,
        /// What is not known.
        what: String,
    },
    /// The file ends before its header does, so there is nothing to be read.
    #[error("{0}: there is no header")]
    NoHeader(CutOff),
    /// The bytes are not those that were written.
    #[error("damaged: {place}: {problem}")]
    Damaged {
        /// The block; all that stands before it is whole.
        place: Place,
        /// What was expected there, and what is.
        problem: String,
    },
    /// The file can't be read.
    #[error("{place}: can't be read: {error}")]
    Io {
        /// The block that was to be read.
        place: Place,
        /// What the system says.
        error: io::Error,
    },
}

pub(super) const fn damaged(place: Place, problem: String) -> RecordingError {
    RecordingError::Damaged { place, problem }
}

/// Why something can't be written to a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file does not take it.
    #[error("the recording can't be written: {0}")]
    Io(#[from] io::Error),
    /// More than fits into a block. Nothing of it was written; all else can be.
    #[error("{what} of {len} bytes: a recording holds at most {limit} in a piece")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its bytes.
        len: usize,
        /// How many there may be.
        limit: usize,
    },
}
