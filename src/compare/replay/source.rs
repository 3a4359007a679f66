//! Where a recording comes from: it is read from its start for each engine.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::recording::{Place, Recording, RecordingError};

/// A recording that can be read again and again.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The bytes of one.
    Bytes(Arc<[u8]>),
}

/// A recording under way, wherever it comes from.
pub(super) type Opened = Recording<Box<dyn Read + Send>>;

impl Source {
    /// Begins to read.
    ///
    /// # Errors
    /// As of [`Recording::new`].
    pub(super) fn open(&self) -> Result<Opened, RecordingError> {
        let from: Box<dyn Read + Send> = match self {
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
            Self::File(path) => {
                let file = File::open(path).map_err(|error| RecordingError::Io {
                    place: Place {
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

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<Vec<u8>> for Source {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}
