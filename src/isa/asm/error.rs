//! Errors in assembly text.

use std::borrow::Cow;

use thiserror::Error;

/// An error in assembly text: position and problem.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("line {line}, column {column}: {kind}")]
#[non_exhaustive]
pub struct AsmError {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// The problem.
    pub kind: AsmErrorKind,
}

/// What is wrong at a position in a text.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum AsmErrorKind {
    /// An unexpected token.
    #[error("expected {expected}, found {}", found_text(.found))]
    Expected {
        /// The expected token.
        expected: Cow<'static, str>,
        /// The token found, up to the next space; empty at the line's end.
        found: String,
    },
    /// A number outside of its field's range.
    #[error("{what} {value} is not in {min}..={max}")]
    Range {
        /// The field's name.
        what: &'static str,
        /// The number.
        value: i128,
        /// The minimum.
        min: i128,
        /// The maximum.
        max: i128,
    },
    /// A jump or call to an undefined label.
    #[error("label `{0}` is not defined")]
    UndefinedLabel(String),
    /// A label that is defined twice.
    #[error("label `{0}` is defined twice")]
    DuplicateLabel(String),
    /// A jump to a label beyond the range of its offset.
    #[error("label `{label}` is {off} slots away, more than this jump reaches{}", hint(.long))]
    TooFar {
        /// The label.
        label: String,
        /// The required offset.
        off: i64,
        /// Whether `gotol` would reach it.
        long: bool,
    },
    /// A call of a name that is neither a label nor a known function.
    #[error("`{0}` is neither a label nor a known function")]
    UnknownFunction(String),
    /// The opcode or bytes before an instruction do not match its text.
    #[error("the text before the instruction says {stated}, the instruction is {encoded}")]
    Mismatch {
        /// The bytes before the instruction, in hex.
        stated: String,
        /// The bytes of the instruction, in hex.
        encoded: String,
    },
}

fn found_text(found: &str) -> String {
    if found.is_empty() {
        "the end of the line".into()
    } else {
        format!("`{found}`")
    }
}

const fn hint(long: &bool) -> &'static str {
    if *long { "; use gotol" } else { "" }
}
