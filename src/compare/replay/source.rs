//! The source of a recording, which is read from its start for each engine.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::recording::{BlockPosition, Recording, RecordingError};

/// A recording that can be read repeatedly.
#[derive(Debug, Clone)]
pub enum RecordingSource {
    /// A file.
    File(PathBuf),
    /// The bytes of a file.
    Bytes(Arc<[u8]>),
}

/// A recording that is being read, from either source.
pub(super) type Opened = Recording<Box<dyn Read + Send>>;

impl RecordingSource {
    /// Opens the recording.
    ///
    /// # Errors
    /// As of [`Recording::new`].
    pub(super) fn open(&self) -> Result<Opened, RecordingError> {
        let from: Box<dyn Read + Send> = match self {
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
            Self::File(path) => {
                let file = File::open(path).map_err(|error| RecordingError::Io {
                    position: BlockPosition {
                        block: 0,
                        offset: 0,
                    },
                    error,
                })?;
                Box::new(BufReader::new(file))
            }
        };
        Recording::new(from)
    }
}

impl From<PathBuf> for RecordingSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<Vec<u8>> for RecordingSource {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}
