//! The types of fields, paths to parts of a field, and the encoding of values. All numbers
//! are little-endian, as on every architecture that bpflab models.

use super::error::ValueProblem;
use super::text::named_number;
use super::value::FieldValue;

/// The type of a field or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A number of `size` bytes.
    Int {
        /// 1, 2, 4, 8 or 16.
        size: u32,
        /// Whether C reads it as signed. Values may be signed or unsigned.
        signed: bool,
    },
    /// A bit-field in the `size` bytes at its offset.
    Bits {
        /// Bytes that hold all of its bits.
        size: u32,
        /// Distance of its lowest bit from the least significant bit.
        shift: u32,
        /// Number of bits, 1 to 64.
        width: u32,
    },
    /// One byte of text. Arrays of it take text with a NUL.
    Char,
    /// An address, 8 bytes.
    Pointer,
    /// Elements of one shape.
    Array {
        /// The shape of each element.
        element: Box<Self>,
        /// The number of elements.
        count: u32,
    },
    /// A struct or union.
    Struct {
        /// Size in bytes.
        size: u32,
        /// Its members; their offsets count from its start.
        members: Vec<Field>,
    },
    /// Bytes of unknown type.
    Opaque {
        /// The number of bytes.
        size: u32,
    },
}

/// Where a field's value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// At its offset.
    Inline,
    /// After the fixed part; the field itself is a `u32` with the length in its upper half
    /// and the offset from the record's start in its lower half.
    DataLoc,
    /// As [`DataLoc`](Self::DataLoc), but the offset counts from the end of the `u32`.
    RelLoc,
}

/// A named part of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The name shown in listings; the format file's name if there is one.
    pub name: String,
    /// Other valid names.
    pub aliases: Vec<String>,
    /// Offset in the enclosing struct, in bytes.
    pub offset: u32,
    /// Its type; the type of one element for [`Storage::DataLoc`] and
    /// [`Storage::RelLoc`].
    pub shape: Shape,
    /// Where its value is stored.
    pub storage: Storage,
    /// Width of its C type in bits, if narrower than its storage: the `int flags` of a system
    /// call is stored in 8 bytes of the record.
    pub narrow: Option<u32>,
    /// Where an address in it points.
    pub(in crate::vm) points: Points,
}

/// Where an address in a field points, beyond what its shape says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::vm) enum Points {
    /// Into the memory of the event's side: the kernel's for its own functions.
    #[default]
    ByEvent,
    /// Into user memory: its type in BTF has the tag `user` (`__user` in C).
    IntoUser,
    /// Nowhere: it is a number, though it is in a register that could hold an address.
    Nowhere,
}

/// A part of a field that a path refers to.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) struct Part<'a> {
    /// The field that the path began with.
    pub field: &'a Field,
    /// Bytes from the start of the context.
    pub offset: u32,
    /// The part's type.
    pub shape: &'a Shape,
}

impl Shape {
    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u32 {
        match self {
            Self::Int { size, .. }
            | Self::Bits { size, .. }
            | Self::Struct { size, .. }
            | Self::Opaque { size } => *size,
            Self::Char => 1,
            Self::Pointer => 8,
            Self::Array { element, count } => element.size().saturating_mul(*count),
        }
    }

    /// The alignment in C; opaque shapes have alignment 1.
    #[must_use]
    pub fn align(&self) -> u32 {
        match self {
            Self::Int { size, .. } => (*size).max(1),
            Self::Pointer => 8,
            Self::Array { element, .. } => element.align(),
            Self::Struct { members, .. } => members
                .iter()
                .map(|member| member.shape.align())
                .max()
                .unwrap_or(1),
            Self::Bits { .. } | Self::Char | Self::Opaque { .. } => 1,
        }
    }

    /// A number of `size` bytes, or opaque bytes for an odd size.
    #[must_use]
    pub const fn number(size: u32, signed: bool) -> Self {
        match size {
            1 | 2 | 4 | 8 | 16 => Self::Int { size, signed },
            size => Self::Opaque { size },
        }
    }

    /// An array of `count` elements of this shape.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self::Array {
            element: Box::new(self),
            count,
        }
    }

    /// Encodes a value into `out`, which has the size of the shape; the rest of an array is
    /// zeroed.
    pub(in crate::vm) fn encode(
        &self,
        value: &FieldValue,
        out: &mut [u8],
    ) -> Result<(), ValueProblem> {
        let named;
        let value = match (self, value) {
            (Self::Int { .. } | Self::Bits { .. }, FieldValue::Text(text)) => {
                named = FieldValue::Int(named_number(text).map_err(ValueProblem::NoConstant)?);
                &named
            }
            _ => value,
        };
        match (self, value) {
            (Self::Int { size, .. }, FieldValue::Int(number)) => {
                store(*number, size.saturating_mul(8), out)
            }
            (Self::Pointer, FieldValue::Int(number)) => store(*number, 64, out),
            (Self::Char, FieldValue::Int(number)) => store(*number, 8, out),
            (Self::Char, FieldValue::Text(text)) => match text.as_bytes() {
                [byte] => store(i128::from(*byte), 8, out),
                bytes => Err(ValueProblem::TooLong {
                    room: 1,
                    len: bytes.len(),
                    unit: "characters",
                }),
            },
            (Self::Bits { shift, width, .. }, FieldValue::Int(number)) => {
                let mut bits = [0; 16];
                store(*number, *width, &mut bits[..8])?;
                let mask = ((1u128 << width) - 1) << shift;
                let mut old = [0; 16];
                for (to, from) in old.iter_mut().zip(out.iter()) {
                    *to = *from;
                }
                let new = (u128::from_le_bytes(bits) << shift) & mask;
                let merged = (u128::from_le_bytes(old) & !mask) | new;
                for (to, from) in out.iter_mut().zip(merged.to_le_bytes()) {
                    *to = from;
                }
                Ok(())
            }
            (Self::Array { element, count }, value) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                let bytes = elements(element, value)?;
                if bytes.len() > out.len() {
                    let unit = element.size().max(1) as usize;
                    let (room, len, unit) = match value {
                        FieldValue::Text(text) => (
                            out.len().saturating_sub(1),
                            text.len(),
                            "bytes of text and a NUL",
                        ),
                        FieldValue::Ints(_) => (count, bytes.len() / unit, "elements"),
                        FieldValue::Bytes(_) | FieldValue::Int(_) => {
                            (out.len(), bytes.len(), "bytes")
                        }
                    };
                    return Err(ValueProblem::TooLong { room, len, unit });
                }
                out.fill(0);
                for (to, from) in out.iter_mut().zip(bytes) {
                    *to = from;
                }
                Ok(())
            }
            (
                Self::Pointer | Self::Int { .. } | Self::Struct { .. } | Self::Opaque { .. },
                FieldValue::Bytes(bytes),
            ) => {
                if bytes.len() != out.len() {
                    return Err(ValueProblem::Length {
                        size: out.len(),
                        len: bytes.len(),
                    });
                }
                out.copy_from_slice(bytes);
                Ok(())
            }
            (shape, given) => Err(ValueProblem::Kind {
                wanted: shape.wanted(),
                given: given.clone(),
            }),
        }
    }

    /// The kind of value that this shape takes, for errors.
    const fn wanted(&self) -> &'static str {
        match self {
            Self::Int { .. } | Self::Bits { .. } => "a number",
            Self::Char => "a character",
            Self::Pointer => "an address (a number; put data into the world's user memory first)",
            Self::Array { .. } => "a list, bytes or text",
            Self::Struct { .. } => "its members one by one (name.member), or all of its bytes",
            Self::Opaque { .. } => "bytes",
        }
    }
}

/// Encodes the elements of an array of this element shape, fixed or dynamic.
pub(in crate::vm) fn elements(
    element: &Shape,
    value: &FieldValue,
) -> Result<Vec<u8>, ValueProblem> {
    let text = matches!(element, Shape::Char | Shape::Opaque { size: 1 });
    let wide = !matches!(
        element,
        Shape::Int { size: 1, .. } | Shape::Char | Shape::Opaque { size: 1 }
    );
    match value {
        FieldValue::Bytes(bytes) => {
            let size = element.size().max(1) as usize;
            if wide && !bytes.len().is_multiple_of(size) {
                return Err(ValueProblem::Length {
                    size: bytes.len().next_multiple_of(size),
                    len: bytes.len(),
                });
            }
            Ok(bytes.clone())
        }
        FieldValue::Text(string) if text => {
            let mut bytes = string.as_bytes().to_vec();
            bytes.push(0);
            Ok(bytes)
        }
        FieldValue::Ints(numbers) if !matches!(element, Shape::Opaque { .. }) => {
            let size = element.size() as usize;
            let mut bytes = vec![0; size.saturating_mul(numbers.len())];
            for (number, out) in numbers.iter().zip(bytes.chunks_mut(size.max(1))) {
                element.encode(&FieldValue::Int(*number), out)?;
            }
            Ok(bytes)
        }
        given => Err(ValueProblem::Kind {
            wanted: match element {
                Shape::Opaque { .. } => "text or bytes (its elements' type is not known)",
                Shape::Char => "text or bytes",
                _ => "a list of numbers or bytes; one element is set as name[index]",
            },
            given: given.clone(),
        }),
    }
}

/// Stores a number that fits into `bits` as a signed or an unsigned number: -1 and 0xffffffff
/// are both valid for an `int`, as in C.
fn store(number: i128, bits: u32, out: &mut [u8]) -> Result<(), ValueProblem> {
    let bits = bits.clamp(1, 126);
    let (min, max) = (-(1i128 << (bits - 1)), (1i128 << bits) - 1);
    if !(min..=max).contains(&number) {
        return Err(ValueProblem::Range {
            value: number,
            bits,
            min,
            max,
        });
    }
    for (to, from) in out.iter_mut().zip(number.to_le_bytes()) {
        *to = from;
    }
    Ok(())
}

/// The size of a C scalar type on 64-bit Linux, given its words.
pub(in crate::vm) fn c_size(words: &[&str]) -> Option<u32> {
    let longs = words.iter().filter(|word| **word == "long").count();
    if longs > 0 {
        return Some(8);
    }
    Some(match *words.iter().rfind(|word| **word != "signed")? {
        "char" | "bool" | "_Bool" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t" => 1,
        "short" | "u16" | "s16" | "__u16" | "__s16" | "__be16" | "__le16" | "uint16_t"
        | "int16_t" => 2,
        "int" | "unsigned" | "u32" | "s32" | "__u32" | "__s32" | "__be32" | "__le32"
        | "uint32_t" | "int32_t" | "pid_t" | "uid_t" | "gid_t" | "dev_t" | "gfp_t" => 4,
        "u64" | "s64" | "__u64" | "__s64" | "__be64" | "__le64" | "uint64_t" | "int64_t"
        | "size_t" | "ssize_t" | "loff_t" | "sector_t" => 8,
        _ => return None,
    })
}

impl Field {
    /// A field at its offset.
    #[must_use]
    pub fn inline(name: impl Into<String>, offset: u32, shape: Shape) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            offset,
            shape,
            storage: Storage::Inline,
            narrow: None,
            points: Points::default(),
        }
    }

    /// Records the C type of a field whose storage is wider than the type.
    #[must_use]
    pub(in crate::vm) fn of_c_type(mut self, c_type: &str) -> Self {
        let words: Vec<_> = c_type.split_whitespace().collect();
        if let (Shape::Int { size, .. }, Some(bytes)) = (&self.shape, c_size(&words)) {
            self.narrow = (bytes < *size).then_some(bytes * 8);
        }
        self
    }

    /// Checks that a value fits the C type.
    pub(in crate::vm) fn check(&self, value: &FieldValue) -> Result<(), ValueProblem> {
        match (self.narrow, value) {
            (Some(bits), FieldValue::Int(number)) => store(*number, bits, &mut [0; 8]),
            _ => Ok(()),
        }
    }

    /// Adds another name.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Whether this is one of its names.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Bytes at its offset: 4 for data of variable length.
    #[must_use]
    pub fn size(&self) -> u32 {
        match self.storage {
            Storage::Inline => self.shape.size(),
            Storage::DataLoc | Storage::RelLoc => 4,
        }
    }

    /// The end of the field, exclusive.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.offset.saturating_add(self.size())
    }
}

/// Follows a path such as `args[2]`, `prev_comm`, `key.addr[0]` from one of
/// `fields`.
pub(in crate::vm) fn find<'a>(fields: &'a [Field], path: &str) -> Option<Part<'a>> {
    // Whole names first: aliases such as `args[2]` look like paths.
    if let Some(field) = fields.iter().find(|field| field.is_named(path)) {
        return Some(Part {
            field,
            offset: field.offset,
            shape: &field.shape,
        });
    }
    let name_end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at_checked(name_end)?;
    let field = fields
        .iter()
        .find(|field| field.is_named(name) && field.storage == Storage::Inline)?;
    let (mut offset, mut shape) = (field.offset, &field.shape);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            let index: u32 = index.trim().parse().ok()?;
            let Shape::Array { element, count } = shape else {
                return None;
            };
            if index >= *count {
                return None;
            }
            offset = offset.checked_add(element.size().checked_mul(index)?)?;
            shape = element;
            rest = after;
        } else {
            let inner = rest.strip_prefix('.')?;
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            let (member, after) = inner.split_at_checked(end)?;
            let Shape::Struct { members, .. } = shape else {
                return None;
            };
            let member = members.iter().find(|field| field.is_named(member))?;
            offset = offset.checked_add(member.offset)?;
            shape = &member.shape;
            rest = after;
        }
    }
    Some(Part {
        field,
        offset,
        shape,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(shape: &Shape, value: impl Into<FieldValue>) -> Result<Vec<u8>, String> {
        let mut out = vec![0xaa; shape.size() as usize];
        match shape.encode(&value.into(), &mut out) {
            Ok(()) => Ok(out),
            Err(problem) => Err(problem.to_string()),
        }
    }

    #[test]
    fn numbers_fit_as_signed_or_as_unsigned() {
        let u32_ = Shape::number(4, false);
        assert_eq!(encode(&u32_, -1), Ok(vec![0xff; 4]));
        assert_eq!(encode(&u32_, u32::MAX), Ok(vec![0xff; 4]));
        assert_eq!(
            encode(&u32_, 5_000_000_000u64).unwrap_err(),
            "has 32 bits: 5000000000 is out of range (-2147483648 to 4294967295)"
        );
        assert!(encode(&u32_, -2_147_483_649i64).is_err());
        assert_eq!(encode(&Shape::number(1, true), true), Ok(vec![1]));
        assert_eq!(encode(&Shape::Pointer, u64::MAX), Ok(vec![0xff; 8]));
        assert_eq!(
            encode(&Shape::number(8, false), i64::MIN),
            Ok(vec![0, 0, 0, 0, 0, 0, 0, 0x80])
        );
    }

    #[test]
    fn text_keeps_its_nul_and_is_never_cut() {
        let comm = Shape::Char.times(4);
        assert_eq!(encode(&comm, "dd"), Ok(b"dd\0\0".to_vec()));
        assert_eq!(encode(&comm, "abc"), Ok(b"abc\0".to_vec()));
        assert_eq!(
            encode(&comm, "abcd").unwrap_err(),
            "has room for 3 bytes of text and a NUL, but 4 were given; \
             values are not truncated"
        );
        assert_eq!(encode(&comm, b"abcd"), Ok(b"abcd".to_vec()));
        assert!(encode(&comm, b"abcde").is_err());
        assert!(encode(&Shape::number(1, false).times(4), "abc").is_err());
    }

    #[test]
    fn arrays_take_lists_and_memory() {
        let args = Shape::number(2, false).times(3);
        assert_eq!(encode(&args, [1u16, 2]), Ok(vec![1, 0, 2, 0, 0, 0]));
        assert_eq!(encode(&args, [1u8, 0, 2, 0]), Ok(vec![1, 0, 2, 0, 0, 0]));
        assert!(encode(&args, [1u8, 0, 2]).is_err());
        assert!(
            encode(&args, [1u16; 4])
                .unwrap_err()
                .contains("3 elements, but 4")
        );
        assert!(encode(&args, [70_000u32]).unwrap_err().contains("16 bits"));
        assert!(encode(&args, 7).is_err());
    }

    #[test]
    fn bits_leave_their_neighbours_alone() {
        let bits = Shape::Bits {
            size: 2,
            shift: 6,
            width: 4,
        };
        assert_eq!(encode(&bits, 0), Ok(vec![0x2a, 0xa8]));
        assert_eq!(encode(&bits, 15), Ok(vec![0xea, 0xab]));
        assert!(encode(&bits, 16).is_err());
    }

    #[test]
    fn paths_lead_to_parts() {
        let inner = Shape::Struct {
            size: 8,
            members: vec![
                Field::inline("a", 0, Shape::number(4, false)),
                Field::inline("b", 4, Shape::number(1, false).times(4)),
            ],
        };
        let fields = [
            Field::inline("key", 16, inner.times(2)),
            Field::inline("fd", 8, Shape::number(8, false)).alias("args[0]"),
        ];
        let at = |path| find(&fields, path).map(|part| (part.offset, part.shape.size()));
        assert_eq!(at("key"), Some((16, 16)));
        assert_eq!(at("key[1].b[3]"), Some((31, 1)));
        assert_eq!(at("args[0]"), Some((8, 8)));
        for path in [
            "key[2]", "key.a", "key[1].c", "key[x]", "key[1", "fd.a", "fd[0]", "", "[0]", "key[0]a",
        ] {
            assert_eq!(at(path), None, "{path}");
        }
    }
}
