//! What can be wrong with an event, and what to do about it.

use thiserror::Error;

use super::value::FieldValue;
use crate::util::Errno;

/// Text that is no value: `FIELD=VALUE`, hexadecimal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at byte {at}: expected {expected}")]
pub struct TextError {
    /// The byte of the text where it happened.
    pub at: usize,
    /// What should stand there.
    pub expected: &'static str,
}

impl TextError {
    pub(super) const fn new(at: usize, expected: &'static str) -> Self {
        Self { at, expected }
    }

    /// The same, counted from `by` bytes earlier.
    pub(super) const fn moved(self, by: usize) -> Self {
        Self {
            at: self.at + by,
            ..self
        }
    }
}

/// Why an event can't be made, changed or placed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// A line of a tracefs `format` file makes no sense.
    #[error("format of {event}, line {line}, column {column}: {problem}")]
    Format {
        /// The event, or what is known of it.
        event: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// Nothing says how this event's record is laid out.
    #[error("no layout for {event}: {}", .tried.join("; "))]
    NoLayout {
        /// `group/name`.
        event: String,
        /// What was looked for, and what came of it; the last says what to do.
        tried: Vec<String>,
    },
    /// A declared layout or an attach point that can't be.
    #[error("{event}: {problem}")]
    Declaration {
        /// The event.
        event: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// There is no such field.
    #[error("{event} has no field `{field}`; it has {}", listed(.known))]
    NoField {
        /// The event.
        event: String,
        /// The name or path asked for.
        field: String,
        /// The fields that there are, those with the nearest name first.
        known: Vec<String>,
    },
    /// The value does not fit the field.
    #[error("{event}: field `{field}` {problem}")]
    Value {
        /// The event.
        event: String,
        /// The name or path as it was given.
        field: String,
        /// Why not.
        problem: ValueProblem,
    },
    /// Text that is no value.
    #[error("`{text}` {error}")]
    Text {
        /// The text.
        text: String,
        /// Where and why.
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
        /// What it checks.
        reason: String,
    },
    /// Bytes that a context can't be given.
    #[error("the context {problem}")]
    Context {
        /// Whose context, and why not.
        problem: String,
    },
    /// The machine has no address left.
    #[error(transparent)]
    Space(#[from] crate::vm::memory::SpaceFull),
}

/// Why a value does not fit a field; reads as the continuation of "field `x`".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueProblem {
    /// A number out of range.
    #[error("has {bits} bits, which {value} does not fit into ({min} to {max})")]
    Range {
        /// The number.
        value: i128,
        /// The field's width in bits.
        bits: u32,
        /// The smallest number that it holds, seen as signed.
        min: i128,
        /// The largest, seen as unsigned.
        max: i128,
    },
    /// Text, bytes or a list that is too long.
    #[error("has room for {room} {unit}, but {len} were given; nothing is cut off silently")]
    TooLong {
        /// How many fit.
        room: usize,
        /// How many were given.
        len: usize,
        /// Of what.
        unit: &'static str,
    },
    /// Bytes for something that is not as long.
    #[error("is {size} bytes long, but {len} were given")]
    Length {
        /// The field's size.
        size: usize,
        /// How many were given.
        len: usize,
    },
    /// A value of another kind.
    #[error("takes {wanted}, not {given}")]
    Kind {
        /// What it takes.
        wanted: &'static str,
        /// What was given.
        given: FieldValue,
    },
    /// A name that stands for no number.
    #[error(
        "takes a number, or constants of system calls by their names (O_WRONLY|O_CREAT); no \
         such constant is known: '{0}'"
    )]
    NoConstant(String),
    /// The field is not for a test to set.
    #[error("can't be set: {0}")]
    Fixed(&'static str),
}

/// The first names of a list, and how many more there are.
pub(in crate::vm) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 24;
    match names {
        [] => "no fields".to_owned(),
        names if names.len() <= SHOWN => names.join(", "),
        names => {
            let shown: Vec<_> = names.iter().take(SHOWN).map(String::as_str).collect();
            format!("{} and {} more", shown.join(", "), names.len() - SHOWN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_visibly() {
        let names: Vec<_> = (0..30).map(|i| format!("f{i}")).collect();
        assert!(listed(&names).ends_with("f23 and 6 more"));
        assert_eq!(listed(&[]), "no fields");
    }
}
