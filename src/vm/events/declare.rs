//! Tracepoints declared by a test, like `TRACE_EVENT` in a kernel header.

use super::error::EventError;
use super::layout::{Layout, LayoutSource, common_fields};
use crate::spec::limits::MAX_TRACE_SIZE;
use crate::vm::fields::{Field, Points, Shape, Storage};

/// The scalar types of a declared field.
///
/// ```
/// use bpflab::vm::events::{Layout, Scalar};
///
/// let layout = Layout::declare("app/request")
///     .field("bytes", Scalar::U32)
///     .string("path")
///     .array("latency", Scalar::U64, 4)
///     .build()?;
/// assert_eq!(layout.fields.last().map(|field| field.offset), Some(16));
/// # Ok::<(), bpflab::vm::events::EventError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// `u8`, `bool`.
    U8,
    /// `u16`.
    U16,
    /// `u32`, `unsigned int`.
    U32,
    /// `u64`, `unsigned long`, `size_t`.
    U64,
    /// `s8`.
    S8,
    /// `s16`.
    S16,
    /// `s32`, `int`, `pid_t`.
    S32,
    /// `s64`, `long`.
    S64,
    /// `char`; an array of it is text.
    Char,
    /// A pointer.
    Pointer,
}

impl Scalar {
    /// The shape of a field of this type.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Self::U8 => Shape::number(1, false),
            Self::U16 => Shape::number(2, false),
            Self::U32 => Shape::number(4, false),
            Self::U64 => Shape::number(8, false),
            Self::S8 => Shape::number(1, true),
            Self::S16 => Shape::number(2, true),
            Self::S32 => Shape::number(4, true),
            Self::S64 => Shape::number(8, true),
            Self::Char => Shape::Char,
            Self::Pointer => Shape::Pointer,
        }
    }
}

/// A tracepoint under construction: fields get their offsets in the order given, aligned as
/// in C.
#[derive(Debug, Clone)]
pub struct Declaration {
    name: String,
    fields: Vec<Field>,
}

impl Layout {
    /// Starts the declaration of tracepoint `group/name`.
    #[must_use]
    pub fn declare(name: impl Into<String>) -> Declaration {
        Declaration {
            name: name.into(),
            fields: common_fields(),
        }
    }
}

impl Declaration {
    /// Adds a scalar (`__field`).
    #[must_use]
    pub fn field(self, name: impl Into<String>, scalar: Scalar) -> Self {
        self.add(name.into(), scalar.shape(), Storage::Inline)
    }

    /// Adds an array of fixed length (`__array`); text if the type is [`Scalar::Char`].
    #[must_use]
    pub fn array(self, name: impl Into<String>, scalar: Scalar, count: u32) -> Self {
        self.add(name.into(), scalar.shape().times(count), Storage::Inline)
    }

    /// Adds a string of variable length (`__string`).
    #[must_use]
    pub fn string(self, name: impl Into<String>) -> Self {
        self.add(name.into(), Shape::Char, Storage::DataLoc)
    }

    /// Adds an array of variable length (`__dynamic_array`).
    #[must_use]
    pub fn dynamic_array(self, name: impl Into<String>, scalar: Scalar) -> Self {
        self.add(name.into(), scalar.shape(), Storage::DataLoc)
    }

    /// Adds a string of variable length with a relative offset (`__rel_string`).
    #[must_use]
    pub fn rel_string(self, name: impl Into<String>) -> Self {
        self.add(name.into(), Shape::Char, Storage::RelLoc)
    }

    /// Adds an array of variable length with a relative offset (`__rel_dynamic_array`).
    #[must_use]
    pub fn rel_dynamic_array(self, name: impl Into<String>, scalar: Scalar) -> Self {
        self.add(name.into(), scalar.shape(), Storage::RelLoc)
    }

    fn add(mut self, name: String, shape: Shape, storage: Storage) -> Self {
        let align = match storage {
            Storage::Inline => shape.align(),
            Storage::DataLoc | Storage::RelLoc => 4,
        };
        let end = self.fields.iter().map(Field::end).max().unwrap_or(0);
        let offset = end.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        self.fields.push(Field {
            name,
            aliases: Vec::new(),
            offset,
            shape,
            storage,
            narrow: None,
            points: Points::default(),
        });
        self
    }

    /// The finished layout.
    ///
    /// # Errors
    /// [`EventError::Declaration`] for a name that is not `group/name`, an empty or duplicate
    /// field name, or more than 8192 bytes.
    pub fn build(self) -> Result<Layout, EventError> {
        let error = |problem: String| {
            Err(EventError::Declaration {
                event: self.name.clone(),
                problem,
            })
        };
        match self.name.split_once('/') {
            Some((group, name)) if is_name(group) && is_name(name) => {}
            _ => return error("a tracepoint's name must be group/name".to_owned()),
        }
        for (index, field) in self.fields.iter().enumerate() {
            if !is_name(&field.name) {
                return error(format!("invalid field name `{}`", field.name));
            }
            let before = self.fields.get(..index).unwrap_or_default();
            if before.iter().any(|other| other.name == field.name) {
                return error(format!("duplicate field `{}`", field.name));
            }
        }
        let layout = Layout::of_fields(
            self.name.clone(),
            self.fields.clone(),
            LayoutSource::Declared,
        );
        if layout.size as usize > MAX_TRACE_SIZE {
            return error(format!(
                "its fields take {} bytes, but a record has at most {MAX_TRACE_SIZE}",
                layout.size
            ));
        }
        Ok(layout)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_as_in_c() {
        let layout = Layout::declare("app/x")
            .field("a", Scalar::U8)
            .field("b", Scalar::U64)
            .array("c", Scalar::Char, 3)
            .string("d")
            .build()
            .unwrap();
        let offsets: Vec<_> = layout.own_fields().map(|f| (&*f.name, f.offset)).collect();
        assert_eq!(offsets, [("a", 8), ("b", 16), ("c", 24), ("d", 28)]);
        assert_eq!(
            (layout.size, layout.data_offset, layout.readable),
            (32, 32, 32)
        );
        assert!(layout.is_dynamic());
    }

    #[test]
    fn names_are_checked() {
        let problem = |declaration: Declaration| declaration.build().unwrap_err().to_string();
        assert_eq!(
            problem(Layout::declare("app")),
            "app: a tracepoint's name must be group/name"
        );
        assert_eq!(
            problem(Layout::declare("a/b").field("x", Scalar::U8).string("x")),
            "a/b: duplicate field `x`"
        );
        assert!(
            problem(Layout::declare("a/b").field("x y", Scalar::U8)).contains("invalid field name")
        );
        assert!(
            problem(Layout::declare("a/b").array("x", Scalar::U64, u32::MAX)).contains("at most")
        );
    }
}
