//! Fields of contexts and of kernel objects: their types, the values that tests give, and
//! the text of values.

mod decode;
mod error;
mod shape;
mod text;
mod value;

pub use error::{TextError, ValueProblem};
pub use shape::{Field, Shape, Storage};
pub use text::{parse_assignment, parse_hex};
pub use value::FieldValue;

pub(super) use error::listed;
pub(super) use shape::{Part, Points, c_size, elements, find};
