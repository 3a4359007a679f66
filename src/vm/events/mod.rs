//! Events: one firing of an attach point, with the context that programs get.
//!
//! A [`Layout`] says which fields a context has and where; an [`Event`] fills them.

mod declare;
mod error;
mod format;
mod from_btf;
mod layout;
mod record;
mod shape;
mod syscall;
mod text;
mod value;

pub use declare::{Declaration, Scalar};
pub use error::{EventError, TextError, ValueProblem};
pub use layout::{HIDDEN, Layout, Source};
pub use shape::{Field, Shape, Storage};
pub use text::{parse_assignment, parse_hex};
pub use value::FieldValue;

#[cfg(test)]
mod live_tests;
