//! Why a recording can't be replayed at all.

use thiserror::Error;

use crate::compare::recording::RecordingError;
use crate::harness;
use crate::instrument::SchemaError;
use crate::object::ObjectError;

/// Why a recording can't be replayed with an object.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It can't be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A program of the object can't be relocated.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Another object, or another version of it, was recorded.
    #[error(
        "the recording was made with another object: {0}; replay needs the recorded object, \
         relocated for the kernel that it was recorded on (--btf FILE)"
    )]
    WrongObject(String),
    /// Another version of bpflab, which logs other fields, wrote the logs of a program, without
    /// their schema.
    #[error(
        "the logs of program '{0}' were written by another version of bpflab and have other \
         fields; replay needs that version (bpflab inspect shows it)"
    )]
    WrongVersion(String),
    /// The schema of a program's logs does not fit the program.
    #[error("invalid schema of the logs of program '{program}': {error}")]
    Schema {
        /// The program.
        program: String,
        /// What is wrong.
        error: Box<SchemaError>,
    },
    /// The maps can't be made, or a program can't be loaded.
    #[error(transparent)]
    Harness(#[from] harness::Error),
}
