//! The source of a recording, which is read from its start for each engine.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ReplayError;
use crate::compare::recording::{BlockPosition, Part, Recording, RecordingError, Resource};
use crate::object::Object;

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
    /// The object that was recorded, which recordings carry along. Its
    /// [file](Object::file) is the name under which it was recorded. `None` for bare events,
    /// and if the recorder could not read the object's file.
    ///
    /// # Errors
    /// [`ReplayError`]: the recording can't be read, or has a broken object.
    pub fn object(&self) -> Result<Option<Object>, ReplayError> {
        let mut recording = self.open()?;
        let described = recording.header().object.clone().unwrap_or_default();
        let bytes = resource(&mut recording, Resource::OBJECT)?;
        let object = bytes.map(|bytes| Object::parse(&described.name, &bytes));
        Ok(object.transpose()?)
    }

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

/// A file that the recording carries along; `None` if it has none of this name.
pub(super) fn resource(
    recording: &mut Opened,
    name: &[u8],
) -> Result<Option<Vec<u8>>, RecordingError> {
    while let Some(part) = recording.next_part()? {
        match part {
            Part::Resources(mut files) => {
                if let Some(file) = files.find(|file| file.name == name) {
                    return Ok(Some(file.bytes.to_vec()));
                }
            }
            Part::Entries(_) | Part::MapReads(_) => {}
            // Files are at the start.
            _ => break,
        }
    }
    Ok(None)
}

impl From<PathBuf> for RecordingSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&Path> for RecordingSource {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl From<&str> for RecordingSource {
    fn from(path: &str) -> Self {
        Self::File(path.into())
    }
}

impl From<Vec<u8>> for RecordingSource {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}
