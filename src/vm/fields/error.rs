//! Errors of values and of their text.

use thiserror::Error;

use super::value::FieldValue;

/// Malformed text: `FIELD=VALUE`, hexadecimal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at byte {at}: expected {expected}")]
#[non_exhaustive]
pub struct TextError {
    /// Byte offset of the error in the text.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl TextError {
    pub(super) const fn new(at: usize, expected: &'static str) -> Self {
        Self { at, expected }
    }

    /// The same error in a text that has `by` more bytes in front.
    pub(super) const fn moved(self, by: usize) -> Self {
        Self {
            at: self.at + by,
            ..self
        }
    }
}

/// Why a value does not fit a field; reads as the continuation of "field `x`".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// A number that is out of range.
    #[error("has {bits} bits: {value} is out of range ({min} to {max})")]
    Range {
        /// The number.
        value: i128,
        /// The field's width in bits.
        bits: u32,
        /// The smallest valid number (signed).
        min: i128,
        /// The largest valid number (unsigned).
        max: i128,
    },
    /// Text, bytes or a list that is too long.
    #[error("has room for {room} {unit}, but {len} were given; values are not truncated")]
    TooLong {
        /// How many fit.
        room: usize,
        /// How many were given.
        len: usize,
        /// Of what.
        unit: &'static str,
    },
    /// The wrong number of bytes.
    #[error("is {size} bytes long, but {len} were given")]
    Length {
        /// The field's size.
        size: usize,
        /// How many bytes were given.
        len: usize,
    },
    /// A value of the wrong kind.
    #[error("takes {wanted}, not {given}")]
    Kind {
        /// What the field takes.
        wanted: &'static str,
        /// What was given.
        given: FieldValue,
    },
    /// An unknown constant.
    #[error(
        "takes a number or names of system-call constants (O_WRONLY|O_CREAT); unknown constant \
         `{0}`"
    )]
    NoConstant(String),
    /// A field that tests can't set.
    #[error("can't be set: {0}")]
    Fixed(&'static str),
}

/// The first names of a list, and the number of those left out.
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
