//! Why a recording can't be replayed at all.

use thiserror::Error;

use super::word::Word;
use crate::compare::recording::RecordingError;
use crate::harness::{self, EngineKind};
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
         relocated for the kernel that it was recorded on (--btf FILE); if the programs have \
         changed since, record them again"
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
    /// Something differs from the recording, or was not compared.
    #[error("on engine {engine} the replay is not equal to the recording: {word}\n{text}")]
    Differs {
        /// The engine.
        engine: EngineKind,
        /// The verdict.
        word: Word,
        /// What differs or was not compared, a line each.
        text: String,
    },
    /// It has no object: its programs are not known.
    #[error(
        "the recording has no object, as it is of events without programs, or the object's file \
         could not be read: give the object, too"
    )]
    NoObject,
    /// The maps can't be made, or a program can't be loaded.
    #[error(transparent)]
    Harness(#[from] harness::Error),
}
