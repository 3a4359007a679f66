//! What can be wrong with a text.

use std::borrow::Cow;

use thiserror::Error;

/// A text that is no program: where, and what was expected there.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("line {line}, column {column}: {kind}")]
pub struct AsmError {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// What is wrong there.
    pub kind: AsmErrorKind,
}

/// What is wrong at a place in a text.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub enum AsmErrorKind {
    /// Something else should stand here.
    #[error("expected {expected}, found {}", found_text(.found))]
    Expected {
        /// What should stand here.
        expected: Cow<'static, str>,
        /// What stands here instead, up to the next space; empty at the line's end.
        found: String,
    },
    /// A number that its field cannot hold.
    #[error("{what} {value} is not in {min}..={max}")]
    Range {
        /// The field.
        what: &'static str,
        /// The number.
        value: i128,
        /// The least number that fits.
        min: i128,
        /// The greatest.
        max: i128,
    },
    /// A jump or call to a label that stands nowhere.
    #[error("label `{0}` is not defined")]
    UndefinedLabel(String),
    /// A label that stands in two places.
    #[error("label `{0}` is defined twice")]
    DuplicateLabel(String),
    /// A jump to a label that its offset cannot reach.
    #[error("label `{label}` is {off} slots away, more than this jump reaches{}", hint(.long))]
    TooFar {
        /// The label.
        label: String,
        /// The offset that would be needed.
        off: i64,
        /// Whether `gotol` would reach it.
        long: bool,
    },
    /// A call of a name that is neither a label nor known as a function.
    #[error("`{0}` is neither a label nor a known function")]
    UnknownFunction(String),
    /// The opcode or the bytes in front of an instruction are not those of its text.
    #[error("the text before the instruction says {stated}, the instruction is {encoded}")]
    Mismatch {
        /// The bytes in front, in hex.
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
