//! Errors of reading and writing a recording, with their position.

use std::fmt;
use std::io;

use thiserror::Error;

use super::block::Version;

/// The position of a block in a recording: its number and its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPosition {
    /// Number of the block; the header is block 0.
    pub block: u64,
    /// Bytes from the start of the file.
    pub offset: u64,
}

impl fmt::Display for BlockPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} at byte {}", self.block, self.offset)
    }
}

/// Where a file without an [`End`](super::End) stops: the recorder was killed, or the file was
/// not copied completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutOff {
    /// The first block that is missing or incomplete.
    pub position: BlockPosition,
    /// How many bytes of that block the file has.
    pub left: u64,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, left } = self;
        write!(f, "cut off in {position}, {left} bytes into the block")
    }
}

pub(super) type Result<T> = std::result::Result<T, RecordingError>;

/// Why a recording, or the rest of one, can't be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Another kind of file.
    #[error("not a bpflab recording: the file does not begin with \\x89bpfrec\\n")]
    NotARecording,
    /// A later major version of the format.
    #[error(
        "recording format {found} is newer than this bpflab reads (up to {known}): use a newer \
         bpflab"
    )]
    Newer {
        /// The file's.
        found: Version,
        /// The last one that can be read.
        known: Version,
    },
    /// A block of a later version that can't be skipped.
    #[error("{position}: unknown {what}: use a newer bpflab")]
    Unknown {
        /// The block.
        position: BlockPosition,
        /// What is unknown.
        what: String,
    },
    /// The file ends before its header does.
    #[error("{0}: there is no header")]
    NoHeader(CutOff),
    /// The bytes are not those that were written.
    #[error("damaged: {position}: {problem}")]
    Damaged {
        /// The block; everything before it is intact.
        position: BlockPosition,
        /// What was expected there, and what was found.
        problem: String,
    },
    /// The file can't be read.
    #[error("{position}: can't be read: {error}")]
    Io {
        /// The block that was to be read.
        position: BlockPosition,
        /// The system's error.
        error: io::Error,
    },
}

pub(super) const fn damaged(position: BlockPosition, problem: String) -> RecordingError {
    RecordingError::Damaged { position, problem }
}

/// Why something can't be written to a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing to the file failed.
    #[error("the recording can't be written: {0}")]
    Io(#[from] io::Error),
    /// An item that does not fit into a block. It was not written; writing can continue.
    #[error("{what} of {len} bytes is too long: the limit is {limit} bytes")]
    TooLong {
        /// Which item.
        what: &'static str,
        /// Its bytes.
        len: usize,
        /// How many there may be.
        limit: usize,
    },
}
