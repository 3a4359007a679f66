//! Converts between bytes and values of a BTF type.
//!
//! [`Btf::decode`] returns a tree that prints like C and converts to the JSON of `bpftool
//! map dump`. [`Btf::encode`] converts JSON to the bytes of a key, a value or a global
//! variable.

mod bits;
mod decode;
mod encode;

pub use encode::SetError;

use std::fmt;

use serde_json::{Map, Value as Json};
use thiserror::Error;

use super::layout::LayoutError;

/// Deepest nesting of a value, in both directions.
const MAX_NESTING: usize = 64;

/// A value of some type. Names are those of the BTF.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer of up to 128 bits.
    Signed(i128),
    /// An unsigned integer of up to 128 bits.
    Unsigned(u128),
    /// A `char`.
    Char(u8),
    /// A floating-point number.
    Float(f64),
    /// A value of an enum.
    Enum {
        /// The enumerator of this value, if there is one.
        name: Option<&'a str>,
        /// The number.
        value: i128,
    },
    /// An address.
    Pointer(u64),
    /// An array of `char` that contains printable text and a NUL.
    Text(String),
    /// Another array.
    Array(Vec<Value<'a>>),
    /// Members in order; an anonymous struct has an empty name.
    Struct(Vec<(&'a str, Value<'a>)>),
    /// A type without values: `void`, a function, a forward declaration.
    Opaque,
}

/// Why a value can't be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}{problem}", Prefix(.path))]
#[non_exhaustive]
pub struct ValueError {
    /// Path in the value: `config.limits[2]`; empty for the whole value.
    pub path: String,
    /// What is wrong with it.
    pub problem: ValueProblem,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// Fewer bytes than the type needs.
    #[error("{wanted} bytes wanted, {found} given")]
    Short {
        /// Bytes required.
        wanted: usize,
        /// Bytes given.
        found: usize,
    },
    /// The type has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// More parts than a reasonable type has in so many bytes.
    #[error("the type has too many parts, or is nested too deeply")]
    TooLarge,
    /// A value of the wrong kind for the type.
    #[error("{found} can't be a value of type {ty}; {wanted} expected")]
    Kind {
        /// The value.
        found: String,
        /// Name of the type.
        ty: String,
        /// The expected kind of value.
        wanted: &'static str,
    },
    /// A number out of range.
    #[error("{value} doesn't fit {ty} ({min} to {max})")]
    Range {
        /// The number.
        value: i128,
        /// Name of the type.
        ty: String,
        /// Least value.
        min: i128,
        /// Greatest value.
        max: i128,
    },
    /// An unknown enumerator.
    #[error("{ty} has no value `{name}`; it has {listed}")]
    Enumerator {
        /// The name.
        name: String,
        /// The enum.
        ty: String,
        /// Names of its enumerators.
        listed: String,
    },
    /// An unknown member.
    #[error("{ty} has no member `{name}`")]
    Member {
        /// The name.
        name: String,
        /// The struct.
        ty: String,
    },
    /// More elements or characters than the array has.
    #[error("{found} elements don't fit an array of {len}")]
    TooMany {
        /// Elements given.
        found: usize,
        /// Elements that fit.
        len: u32,
    },
}

/// Formats a path followed by `: `; an empty path as an empty string.
struct Prefix<'a>(&'a str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, "{}: ", self.0)
        }
    }
}

/// The path of the current part of a value.
#[derive(Debug, Default)]
struct Path(String);

impl Path {
    /// Adds a member's name; returns the length to restore with [`back`](Self::back).
    fn member(&mut self, name: &str) -> usize {
        let len = self.0.len();
        if len > 0 && !name.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(name);
        len
    }

    /// Adds an index; returns the length to restore with [`back`](Self::back).
    fn index(&mut self, index: usize) -> usize {
        let len = self.0.len();
        self.0.push_str(&format!("[{index}]"));
        len
    }

    /// Truncates the path to `len`.
    fn back(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// An error at this path.
    fn error(&self, problem: impl Into<ValueProblem>) -> ValueError {
        ValueError {
            path: self.0.clone(),
            problem: problem.into(),
        }
    }
}

impl Value<'_> {
    /// The value as JSON, in the shape of `bpftool map dump --json` with BTF: structs
    /// are objects, enumerators go by name, a printable character is a string. A
    /// number of more than 64 bits is a string of hex digits.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Bool(value) => Json::from(*value),
            Self::Signed(value) => integer(*value),
            Self::Unsigned(value) => match u64::try_from(*value) {
                Ok(value) => Json::from(value),
                Err(_) => Json::from(format!("{value:#x}")),
            },
            Self::Char(byte) => Json::from(character(*byte)),
            Self::Float(value) => Json::from(*value),
            Self::Enum {
                name: Some(name), ..
            } => Json::from(*name),
            Self::Enum { name: None, value } => integer(*value),
            Self::Pointer(address) => Json::from(*address),
            Self::Text(text) => Json::from(text.as_str()),
            Self::Array(elements) => elements.iter().map(Self::to_json).collect(),
            Self::Struct(members) => {
                let mut object = Map::new();
                fill(&mut object, members);
                Json::Object(object)
            }
            Self::Opaque => Json::Null,
        }
    }
}

/// Adds members to an object; those of an anonymous struct are added directly, as in C.
fn fill(object: &mut Map<String, Json>, members: &[(&str, Value<'_>)]) {
    for (name, value) in members {
        match value {
            Value::Struct(inner) if name.is_empty() => fill(object, inner),
            value => {
                object.insert((*name).to_owned(), value.to_json());
            }
        }
    }
}

fn integer(value: i128) -> Json {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Json::from(value),
        (_, Ok(value)) => Json::from(value),
        _ => Json::from(format!("{:#x}", value.cast_unsigned())),
    }
}

/// A character as text; one that isn't printable as an escape.
fn character(byte: u8) -> String {
    byte.escape_ascii().to_string()
}

impl fmt::Display for Value<'_> {
    /// One line that reads like C: `{pid: 42, comm: "dd", args: [1, 2]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Char(byte) => write!(f, "'{}'", character(*byte)),
            Self::Float(value) => write!(f, "{value}"),
            Self::Enum {
                name: Some(name), ..
            } => f.write_str(name),
            Self::Enum { name: None, value } => write!(f, "{value}"),
            Self::Pointer(address) => write!(f, "{address:#x}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Array(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{element}")?;
                }
                f.write_str("]")
            }
            Self::Struct(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let colon = if name.is_empty() { "" } else { ": " };
                    write!(f, "{comma}{name}{colon}{value}")?;
                }
                f.write_str("}")
            }
            Self::Opaque => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests;
