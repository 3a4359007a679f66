//! The values of fields in bytes: the inverse of encoding.

use super::shape::{Field, Shape, Storage};
use super::value::FieldValue;

/// The value of a shape in its bytes; `None` for structs, whose members have values of their
/// own, and for bytes of unknown type.
fn value(shape: &Shape, bytes: &[u8]) -> Option<FieldValue> {
    match shape {
        Shape::Int { size, signed } => Some(FieldValue::Int(number(
            bytes.get(..*size as usize)?,
            *signed,
        ))),
        Shape::Pointer => Some(FieldValue::Int(number(bytes.get(..8)?, false))),
        Shape::Char => Some(FieldValue::Int(number(bytes.get(..1)?, false))),
        Shape::Bits { size, shift, width } => {
            let whole = number(bytes.get(..*size as usize)?, false);
            Some(FieldValue::Int((whole >> shift) & ((1 << width) - 1)))
        }
        Shape::Array { element, count } => {
            let size = element.size().checked_mul(*count)?;
            list(element, bytes.get(..size as usize)?)
        }
        Shape::Struct { .. } | Shape::Opaque { .. } => None,
    }
}

/// The elements of an array: a text if they are characters up to the first NUL and nothing
/// after it, else numbers.
fn list(element: &Shape, bytes: &[u8]) -> Option<FieldValue> {
    if matches!(element, Shape::Char | Shape::Opaque { size: 1 }) {
        let end = bytes.iter().position(|byte| *byte == 0);
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if end.is_some()
            && rest.iter().all(|byte| *byte == 0)
            && let Ok(text) = std::str::from_utf8(text)
        {
            return Some(FieldValue::Text(text.to_owned()));
        }
    }
    let (size, signed) = match element {
        Shape::Int { size, signed } => (*size as usize, *signed),
        Shape::Char => (1, false),
        Shape::Pointer => (8, false),
        _ => return None,
    };
    let numbers = bytes.chunks_exact(size.max(1));
    Some(FieldValue::Ints(
        numbers.map(|bytes| number(bytes, signed)).collect(),
    ))
}

/// A little-endian number of up to 8 bytes; of 16 bytes the lower half, which is what a value
/// can hold.
fn number(bytes: &[u8], signed: bool) -> i128 {
    let mut whole = [0; 16];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    let unsigned = i128::from_le_bytes(whole);
    let bits = bytes.len().min(16) * 8;
    if signed && bits < 128 && unsigned >> (bits.max(1) - 1) & 1 == 1 {
        unsigned - (1 << bits)
    } else {
        unsigned
    }
}

impl Field {
    /// Adds the values of this field and of its members in a context, with their paths:
    /// `prev_comm`, `key.addr`. Adds nothing for what the bytes do not hold, or whose type is
    /// not known.
    pub(in crate::vm) fn values(&self, context: &[u8], to: &mut Vec<(String, FieldValue)>) {
        self.members(&self.name, context, 0, to);
    }

    fn members(&self, path: &str, context: &[u8], base: u32, to: &mut Vec<(String, FieldValue)>) {
        let at = (base + self.offset) as usize;
        let found = match (self.storage, &self.shape) {
            (Storage::Inline, Shape::Struct { members, .. }) => {
                for member in members {
                    let path = format!("{path}.{}", member.name);
                    member.members(&path, context, base + self.offset, to);
                }
                return;
            }
            (Storage::Inline, shape) => {
                let found = context.get(at..).and_then(|bytes| value(shape, bytes));
                found.map(|value| self.narrowed(value))
            }
            (Storage::DataLoc | Storage::RelLoc, element) => {
                elsewhere(self, context).and_then(|bytes| list(element, bytes))
            }
        };
        to.extend(found.map(|value| (path.to_owned(), value)));
    }
}

impl Field {
    /// A negative number of a C type that is narrower than its storage, as C reads it: the
    /// storage has the sign extended.
    fn narrowed(&self, value: FieldValue) -> FieldValue {
        match (self.narrow, value) {
            (Some(bits), FieldValue::Int(number)) if number >> bits != 0 => {
                let negative = number - (1 << (self.shape.size().min(8) * 8));
                let fits = negative >> (bits - 1) == -1;
                FieldValue::Int(if fits { negative } else { number })
            }
            (_, value) => value,
        }
    }
}

/// The data of a field of variable length.
fn elsewhere<'c>(field: &Field, context: &'c [u8]) -> Option<&'c [u8]> {
    let at = field.offset as usize;
    let location = context.get(at..at + 4)?.first_chunk()?;
    let location = u32::from_le_bytes(*location);
    let base = match field.storage {
        Storage::RelLoc => field.end() as usize,
        Storage::DataLoc | Storage::Inline => 0,
    };
    let from = base + (location & 0xffff) as usize;
    context.get(from..from + (location >> 16) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_stored_wider_is_read_as_its_c_type() {
        let fd = Field::inline("fd", 0, Shape::number(8, false)).of_c_type("int");
        let read = |stored: u64| {
            let mut values = Vec::new();
            fd.values(&stored.to_le_bytes(), &mut values);
            values.remove(0).1
        };
        assert_eq!(read(3), FieldValue::Int(3));
        assert_eq!(read(u64::MAX), FieldValue::Int(-1));
        assert_eq!(read(0xffff_ffff), FieldValue::Int(0xffff_ffff));
        // No int: as it is.
        assert_eq!(read(1 << 40), FieldValue::Int(1 << 40));
    }

    #[test]
    fn structs_have_the_values_of_their_members() {
        let addr = Field::inline("addr", 4, Shape::number(2, true));
        let bits = Shape::Bits {
            size: 1,
            shift: 2,
            width: 3,
        };
        let members = vec![Field::inline("flags", 0, bits), addr];
        let key = Field::inline("key", 2, Shape::Struct { size: 6, members });
        let mut values = Vec::new();
        key.values(&[0, 0, 0b1_0110, 0, 0, 0, 0xfe, 0xff], &mut values);
        let expected = [("key.flags", 5), ("key.addr", -2)];
        let expected = expected.map(|(name, value)| (name.to_owned(), FieldValue::Int(value)));
        assert_eq!(values, expected);
    }

    #[test]
    fn what_the_bytes_do_not_hold_has_no_value() {
        let mut values = Vec::new();
        Field::inline("late", 8, Shape::number(4, false)).values(&[0; 11], &mut values);
        let mut text = Field::inline("text", 0, Shape::Char);
        text.storage = Storage::DataLoc;
        text.values(&(5u32 << 16 | 4).to_le_bytes(), &mut values);
        assert_eq!(values, []);
    }
}
