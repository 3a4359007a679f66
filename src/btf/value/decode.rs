//! Decodes bytes to values.

use super::super::blob::Btf;
use super::super::kind::Kind;
use super::super::types::{Encoding, Type};
use super::{MAX_NESTING, Path, Value, ValueError, ValueProblem, bits};
use crate::util::TypeId;

/// Maximum parts of a value per byte: unions show the same bytes several times.
const PARTS_PER_BYTE: usize = 64;

impl Btf {
    /// Decodes `bytes` as a value of type `id`; bytes beyond its size are ignored.
    ///
    /// # Errors
    /// [`ValueError`] with the path in the value.
    pub fn decode<'a>(&'a self, id: TypeId, bytes: &[u8]) -> Result<Value<'a>, ValueError> {
        let mut decoder = Decoder {
            btf: self,
            bytes,
            path: Path::default(),
            left: bytes
                .len()
                .saturating_mul(PARTS_PER_BYTE)
                .saturating_add(4096),
            depth: 0,
        };
        decoder.value(id, 0, None)
    }
}

struct Decoder<'a, 'b> {
    btf: &'a Btf,
    bytes: &'b [u8],
    path: Path,
    /// Number of parts left.
    left: usize,
    depth: usize,
}

impl<'a> Decoder<'a, '_> {
    /// The value of type `id` at bit `at`; `width` is set for a bitfield.
    fn value(&mut self, id: TypeId, at: u64, width: Option<u8>) -> Result<Value<'a>, ValueError> {
        let too_large = ValueProblem::TooLarge;
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| self.path.error(too_large.clone()))?;
        if self.depth >= MAX_NESTING {
            return Err(self.path.error(too_large));
        }
        self.depth += 1;
        let ty = self
            .btf
            .resolve(id)
            .map_err(|error| self.path.error(error))?;
        let value = self.resolved(ty, at, width);
        self.depth -= 1;
        value
    }

    fn resolved(
        &mut self,
        ty: Type<'a>,
        at: u64,
        width: Option<u8>,
    ) -> Result<Value<'a>, ValueError> {
        let size_bits = ty.size().unwrap_or_default().saturating_mul(8).min(128);
        let width = width.map(u32::from);
        match ty.kind() {
            Kind::Int => {
                let int = ty.int();
                let count = width
                    .or(int.map(|int| u32::from(int.bits)))
                    .unwrap_or(size_bits);
                let at = at.saturating_add(int.map_or(0, |int| u64::from(int.offset)));
                let raw = self.bits(at, count)?;
                let [low, ..] = raw.to_le_bytes();
                Ok(match int.map(|int| int.encoding) {
                    Some(Encoding::Bool) => Value::Bool(raw != 0),
                    _ if is_char(ty) && width.is_none() => Value::Char(low),
                    Some(Encoding::Signed) => Value::Signed(bits::sign_extend(raw, count)),
                    _ => Value::Unsigned(raw),
                })
            }
            Kind::Enum | Kind::Enum64 => {
                let count = width.unwrap_or(size_bits);
                let raw = self.bits(at, count)?;
                let value = if ty.is_signed_enum() {
                    bits::sign_extend(raw, count)
                } else {
                    i128::try_from(raw).unwrap_or_default()
                };
                let name = ty.enumerators().find(|known| known.value() == value);
                Ok(Value::Enum {
                    name: name.map(|known| known.name),
                    value,
                })
            }
            Kind::Ptr => {
                let raw = self.bits(at, 64)?;
                Ok(Value::Pointer(u64::try_from(raw).unwrap_or_default()))
            }
            Kind::Float => {
                let raw = self.bits(at, size_bits)?;
                Ok(match ty.size() {
                    Some(4) => Value::Float(f64::from(f32::from_bits(
                        u32::try_from(raw).unwrap_or_default(),
                    ))),
                    Some(8) => Value::Float(f64::from_bits(u64::try_from(raw).unwrap_or_default())),
                    _ => Value::Unsigned(raw),
                })
            }
            Kind::Array => self.array(ty, at),
            Kind::Struct | Kind::Union => {
                let members = ty.members().map(|member| {
                    let at = at.saturating_add(u64::from(member.bit_offset));
                    self.named(member.name, member.ty, at, member.bitfield)
                });
                Ok(Value::Struct(members.collect::<Result<_, _>>()?))
            }
            Kind::Datasec => {
                let variables = ty.variables().map(|place| {
                    let at = at.saturating_add(u64::from(place.offset) * 8);
                    self.named(self.btf.ty(place.ty).name(), place.ty, at, None)
                });
                Ok(Value::Struct(variables.collect::<Result<_, _>>()?))
            }
            Kind::Var | Kind::DeclTag => self.value(ty.target_id().unwrap_or_default(), at, None),
            _ => Ok(Value::Opaque),
        }
    }

    fn named(
        &mut self,
        name: &'a str,
        ty: TypeId,
        at: u64,
        width: Option<u8>,
    ) -> Result<(&'a str, Value<'a>), ValueError> {
        let len = self.path.member(name);
        let value = self.value(ty, at, width)?;
        self.path.back(len);
        Ok((name, value))
    }

    fn array(&mut self, ty: Type<'a>, at: u64) -> Result<Value<'a>, ValueError> {
        let Some(array) = ty.array() else {
            return Ok(Value::Opaque);
        };
        let element = self
            .btf
            .resolve(array.element)
            .map_err(|error| self.path.error(error))?;
        if is_char(element)
            && let Some(text) = self.text(at, array.len)
        {
            return Ok(Value::Text(text));
        }
        let size = self
            .btf
            .size_of(array.element)
            .map_err(|error| self.path.error(error))?;
        // Elements of size 0 are omitted, whatever their number.
        let len = if size == 0 { 0 } else { array.len };
        let mut elements = Vec::new();
        for index in 0..len {
            let at = at.saturating_add(u64::from(index) * u64::from(size) * 8);
            let len = self.path.index(index as usize);
            elements.push(self.value(array.element, at, None)?);
            self.path.back(len);
        }
        Ok(Value::Array(elements))
    }

    /// The text of a character array, if it is printable and ends with a NUL.
    fn text(&self, at: u64, len: u32) -> Option<String> {
        let start = usize::try_from(at / 8).ok()?;
        let bytes = self.bytes.get(start..)?.get(..len as usize)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let text = bytes.get(..end)?;
        let printable = text
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        (printable && at.is_multiple_of(8)).then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn bits(&self, at: u64, count: u32) -> Result<u128, ValueError> {
        bits::read(self.bytes, at, count).ok_or_else(|| {
            let wanted = at.saturating_add(u64::from(count)).div_ceil(8);
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            self.path.error(ValueProblem::Short {
                wanted,
                found: self.bytes.len(),
            })
        })
    }
}

/// Whether bpftool treats this as a character: by its encoding, or by its name, since clang
/// encodes `char` as a signed integer.
pub(super) fn is_char(ty: Type<'_>) -> bool {
    ty.kind() == Kind::Int
        && ty.size() == Some(1)
        && (ty.name() == "char" || ty.int().is_some_and(|int| int.encoding == Encoding::Char))
}
