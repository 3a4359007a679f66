//! Encodes JSON as bytes.

use std::net::Ipv4Addr;

use serde_json::Value as Json;

use super::super::blob::Btf;
use super::super::kind::Kind;
use super::super::path::PathError;
use super::super::types::{Encoding, Type};
use super::decode::is_char;
use super::{MAX_NESTING, Path, ValueError, ValueProblem, bits};
use crate::util::TypeId;
/// Maximum number of names an error lists.
const LISTED: usize = 12;

impl Btf {
    /// Encodes a value of type `id`. Parts that the JSON omits are zero.
    ///
    /// | type | JSON |
    /// |---|---|
    /// | integer, pointer | number, boolean, or a string: `"-1"`, `"0x10"`, `"'a'"` |
    /// | unsigned integer of 32 bits | also an IPv4 address, in network order: `"10.0.0.1"` |
    /// | enum | enumerator's name, or a number |
    /// | array of `char` | string (the NUL may be left out if it is full), or array |
    /// | array | array, not longer than the type's |
    /// | struct | object, of the members' names |
    /// | union | object, of one member's name |
    ///
    /// # Errors
    /// [`ValueError`] with the path in the value.
    pub fn encode(&self, id: TypeId, value: &Json) -> Result<Vec<u8>, ValueError> {
        let size = self
            .size_of(id)
            .map_err(|error| Path::default().error(error))?;
        // Don't allocate gigabytes because a hostile type says so.
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(size as usize);
        room.map_err(|_| Path::default().error(ValueProblem::TooLarge))?;
        bytes.resize(size as usize, 0);
        self.encode_into(id, value, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a value of type `id` over the start of `bytes`. Parts that the JSON omits are
    /// not changed.
    ///
    /// # Errors
    /// [`ValueError`]; `bytes` are then partly written.
    pub fn encode_into(
        &self,
        id: TypeId,
        value: &Json,
        bytes: &mut [u8],
    ) -> Result<(), ValueError> {
        let mut encoder = Encoder {
            btf: self,
            bytes,
            path: Path::default(),
            depth: 0,
        };
        encoder.value(id, 0, None, value)
    }

    /// Writes the field at a C path ([`Btf::field`]) of a value of type `id`.
    ///
    /// # Errors
    /// [`SetError`] for a wrong path or a wrong value.
    pub fn set(
        &self,
        id: TypeId,
        path: &str,
        value: &Json,
        bytes: &mut [u8],
    ) -> Result<(), SetError> {
        let field = self.field(id, path)?;
        let width = field
            .is_bitfield
            .then(|| u8::try_from(field.bit_size).unwrap_or(u8::MAX));
        let path = Path(path.to_owned());
        let mut encoder = Encoder {
            btf: self,
            bytes,
            path,
            depth: 0,
        };
        Ok(encoder.value(field.ty, field.bit_offset, width, value)?)
    }
}

/// Why a field can't be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// There is no such field.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The value doesn't fit.
    #[error(transparent)]
    Value(#[from] ValueError),
}

struct Encoder<'a, 'b> {
    btf: &'a Btf,
    bytes: &'b mut [u8],
    path: Path,
    depth: usize,
}

/// An IPv4 address as a number whose bytes are in network order (`__be32`); objects are little
/// endian.
fn address(value: &Json) -> Option<u32> {
    let address: Ipv4Addr = value.as_str()?.parse().ok()?;
    Some(u32::from_le_bytes(address.octets()))
}

impl<'a> Encoder<'a, '_> {
    /// Writes `value` as type `id` at bit `at`; `width` is set for a bitfield.
    fn value(
        &mut self,
        id: TypeId,
        at: u64,
        width: Option<u8>,
        value: &Json,
    ) -> Result<(), ValueError> {
        if self.depth >= MAX_NESTING {
            return Err(self.path.error(ValueProblem::TooLarge));
        }
        self.depth += 1;
        let ty = self
            .btf
            .resolve(id)
            .map_err(|error| self.path.error(error))?;
        self.resolved(ty, id, at, width.map(u32::from), value)?;
        self.depth -= 1;
        Ok(())
    }

    fn resolved(
        &mut self,
        ty: Type<'a>,
        id: TypeId,
        at: u64,
        width: Option<u32>,
        value: &Json,
    ) -> Result<(), ValueError> {
        let size_bits = ty.size().unwrap_or_default().saturating_mul(8).min(128);
        match ty.kind() {
            Kind::Int => {
                let int = ty.int();
                let count = width
                    .or(int.map(|int| u32::from(int.bits)))
                    .unwrap_or(size_bits);
                let number = match address(value).filter(|_| count == 32) {
                    Some(address) => i128::from(address),
                    None => self.number(id, value, is_char(ty), "a number")?,
                };
                let at = at.saturating_add(int.map_or(0, |int| u64::from(int.offset)));
                match int.map(|int| int.encoding) {
                    Some(Encoding::Bool) => self.range(id, number, 0, 1)?,
                    // Characters are written as bytes, signed or not.
                    _ if is_char(ty) => self.range(id, number, -128, 255)?,
                    encoding => self.fits(id, number, count, encoding == Some(Encoding::Signed))?,
                }
                self.put(at, count, number)
            }
            Kind::Enum | Kind::Enum64 => {
                let count = width.unwrap_or(size_bits);
                let number = match value.as_str() {
                    Some(name) => self.enumerator(ty, id, name)?,
                    None => self.number(id, value, false, "a number or an enumerator's name")?,
                };
                self.fits(id, number, count, ty.is_signed_enum())?;
                self.put(at, count, number)
            }
            Kind::Ptr => {
                let number = self.number(id, value, false, "an address")?;
                self.fits(id, number, 64, false)?;
                self.put(at, 64, number)
            }
            Kind::Float => {
                let number = value
                    .as_f64()
                    .ok_or_else(|| self.kind(id, value, "a number"))?;
                match ty.size() {
                    #[expect(clippy::cast_possible_truncation, reason = "C rounds here, too")]
                    Some(4) => self.put(at, 32, i128::from((number as f32).to_bits())),
                    Some(8) => self.put(at, 64, i128::from(number.to_bits())),
                    _ => Err(self.kind(id, value, "a float or double")),
                }
            }
            Kind::Array => self.array(ty, id, at, value),
            Kind::Struct | Kind::Union => self.members(ty, id, at, value),
            Kind::Datasec => {
                let object = value.as_object();
                let object = object.ok_or_else(|| self.kind(id, value, "an object"))?;
                for (name, value) in object {
                    let place = ty
                        .variables()
                        .find(|place| self.btf.ty(place.ty).name() == name);
                    let place = place.ok_or_else(|| self.no_member(id, name))?;
                    let at = at.saturating_add(u64::from(place.offset) * 8);
                    self.member(name, place.ty, at, None, value)?;
                }
                Ok(())
            }
            Kind::Var | Kind::DeclTag => {
                self.value(ty.target_id().unwrap_or_default(), at, None, value)
            }
            _ => Err(self.kind(id, value, "a type with a size")),
        }
    }

    fn members(
        &mut self,
        ty: Type<'a>,
        id: TypeId,
        at: u64,
        value: &Json,
    ) -> Result<(), ValueError> {
        let object = value.as_object();
        let object = object.ok_or_else(|| self.kind(id, value, "an object of member names"))?;
        for (name, value) in object {
            let found = self
                .btf
                .member(ty.id(), name)
                .map_err(|error| self.path.error(error))?;
            let found = found.ok_or_else(|| self.no_member(id, name))?;
            let width = u8::try_from(found.bit_size)
                .ok()
                .filter(|_| found.is_bitfield);
            self.member(
                name,
                found.ty,
                at.saturating_add(found.bit_offset),
                width,
                value,
            )?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        name: &str,
        ty: TypeId,
        at: u64,
        width: Option<u8>,
        value: &Json,
    ) -> Result<(), ValueError> {
        let len = self.path.member(name);
        self.value(ty, at, width, value)?;
        self.path.back(len);
        Ok(())
    }

    fn array(&mut self, ty: Type<'a>, id: TypeId, at: u64, value: &Json) -> Result<(), ValueError> {
        let Some(array) = ty.array() else {
            return Ok(());
        };
        let size = self
            .btf
            .size_of(array.element)
            .map_err(|error| self.path.error(error))?;
        let element = self
            .btf
            .resolve(array.element)
            .map_err(|error| self.path.error(error))?;
        let check = |path: &Path, found: usize| match u32::try_from(found) {
            Ok(count) if count <= array.len => Ok(()),
            _ => Err(path.error(ValueProblem::TooMany {
                found,
                len: array.len,
            })),
        };
        let place =
            |index: usize| at.saturating_add((index as u64).saturating_mul(u64::from(size) * 8));
        match value {
            Json::String(text) if is_char(element) => {
                check(&self.path, text.len())?;
                // The rest of the array is filled with zeros.
                let bytes = text
                    .bytes()
                    .chain(std::iter::repeat(0))
                    .take(array.len as usize);
                for (index, byte) in bytes.enumerate() {
                    self.put(place(index), 8, i128::from(byte))?;
                }
                Ok(())
            }
            Json::Array(values) => {
                check(&self.path, values.len())?;
                for (index, value) in values.iter().enumerate() {
                    let len = self.path.index(index);
                    self.value(array.element, place(index), None, value)?;
                    self.path.back(len);
                }
                Ok(())
            }
            _ if is_char(element) => Err(self.kind(id, value, "a string or an array")),
            _ => Err(self.kind(id, value, "an array")),
        }
    }

    /// Parses a JSON value as a number.
    fn number(
        &self,
        id: TypeId,
        value: &Json,
        character: bool,
        wanted: &'static str,
    ) -> Result<i128, ValueError> {
        let number = match value {
            Json::Bool(value) => Some(i128::from(*value)),
            Json::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from)),
            Json::String(text) => parse(text, character),
            _ => None,
        };
        number.ok_or_else(|| self.kind(id, value, wanted))
    }

    fn enumerator(&self, ty: Type<'a>, id: TypeId, name: &str) -> Result<i128, ValueError> {
        if let Some(known) = ty.enumerators().find(|known| known.name == name) {
            return Ok(known.value());
        }
        parse(name, false).ok_or_else(|| {
            let names: Vec<_> = ty
                .enumerators()
                .map(|known| known.name)
                .take(LISTED)
                .collect();
            self.path.error(ValueProblem::Enumerator {
                name: name.to_owned(),
                ty: self.btf.type_name(id),
                listed: names.join(", "),
            })
        })
    }

    fn fits(&self, id: TypeId, number: i128, count: u32, signed: bool) -> Result<(), ValueError> {
        let max = |bits: u32| {
            1i128
                .checked_shl(bits)
                .map_or(i128::MAX, |bit| bit.wrapping_sub(1))
        };
        if signed {
            let max = max(count.saturating_sub(1));
            self.range(id, number, -max - 1, max)
        } else {
            self.range(id, number, 0, max(count))
        }
    }

    fn range(&self, id: TypeId, value: i128, min: i128, max: i128) -> Result<(), ValueError> {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(self.path.error(ValueProblem::Range {
            value,
            ty: self.btf.type_name(id),
            min,
            max,
        }))
    }

    fn put(&mut self, at: u64, count: u32, number: i128) -> Result<(), ValueError> {
        if bits::write(self.bytes, at, count, number.cast_unsigned()) {
            return Ok(());
        }
        let wanted = at.saturating_add(u64::from(count)).div_ceil(8);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        Err(self.path.error(ValueProblem::Short {
            wanted,
            found: self.bytes.len(),
        }))
    }

    fn kind(&self, id: TypeId, value: &Json, wanted: &'static str) -> ValueError {
        let ty = self.btf.type_name(id);
        self.path.error(ValueProblem::Kind {
            found: value.to_string(),
            ty,
            wanted,
        })
    }

    fn no_member(&self, id: TypeId, name: &str) -> ValueError {
        let problem = ValueProblem::Member {
            name: name.to_owned(),
            ty: self.btf.type_name(id),
        };
        self.path.error(problem)
    }
}

/// Parses a number as in C, or a character in quotes; `character` also accepts a single
/// unquoted one.
fn parse(text: &str, character: bool) -> Option<i128> {
    let text = text.trim();
    let quoted = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    if let Some([byte]) = quoted.map(str::as_bytes) {
        return Some(i128::from(*byte));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits.starts_with('+') => None,
        None => digits.parse::<u64>().ok(),
    };
    match (number, text.as_bytes()) {
        (Some(number), _) if negative => Some(-i128::from(number)),
        (Some(number), _) => Some(i128::from(number)),
        (None, [byte]) if character => Some(i128::from(*byte)),
        (None, _) => None,
    }
}
