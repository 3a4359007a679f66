//! Errors of building, changing and placing events.

use thiserror::Error;

use crate::util::Errno;
use crate::vm::fields::{TextError, ValueProblem, listed};

/// Why an event can't be built, changed or placed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventError {
    /// A malformed line of a tracefs `format` file.
    #[error("format of {event}, line {line}, column {column}: {problem}")]
    Format {
        /// The event, as far as its name is known.
        event: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// No source has the layout of this event's record.
    #[error("no layout for {event}: {}", .tried.join("; "))]
    NoLayout {
        /// `group/name`.
        event: String,
        /// What was tried and why it failed; the last entry says what to do.
        tried: Vec<String>,
    },
    /// An invalid declared layout or attach point.
    #[error("{event}: {problem}")]
    Declaration {
        /// The event.
        event: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Unknown field.
    #[error("{event} has no field `{field}`; it has {}", listed(.known))]
    NoField {
        /// The event.
        event: String,
        /// The requested name or path.
        field: String,
        /// The existing fields, most similar names first.
        known: Vec<String>,
    },
    /// The value does not fit the field.
    #[error("{event}: field `{field}` {problem}")]
    Value {
        /// The event.
        event: String,
        /// The requested name or path.
        field: String,
        /// Why not.
        problem: ValueProblem,
    },
    /// Malformed text.
    #[error("`{text}` {error}")]
    Text {
        /// The text.
        text: String,
        /// Position and expectation.
        error: TextError,
    },
    /// The kernel does not run this type of program on this event.
    #[error("{event} can't run a program of type {prog_type}: {reason}")]
    WrongProgram {
        /// The event.
        event: String,
        /// The program's type.
        prog_type: String,
        /// Which types it runs, or what is missing.
        reason: String,
    },
    /// The kernel refuses these bytes.
    #[error("{event}: {errno}: {reason}")]
    Refused {
        /// The event.
        event: String,
        /// The kernel's errno.
        errno: Errno,
        /// The check that failed.
        reason: String,
    },
    /// The context can't hold these bytes.
    #[error("the context {problem}")]
    Context {
        /// Which context, and why.
        problem: String,
    },
    /// The machine's address space is full.
    #[error(transparent)]
    Space(#[from] crate::vm::memory::SpaceFull),
}
