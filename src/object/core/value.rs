//! The number that a relocation puts into an instruction.

use super::access::Access;
use super::error::Fault;
use super::kind::RelocationKind;
use crate::btf::{Btf, Encoding, Kind};
use crate::util::TypeId;

/// The value of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The number.
    pub value: u64,
    /// Whether the compiler's number for the object's own types must equal this library's.
    pub exact: bool,
    /// The field that a load or store at this offset accesses.
    pub field: Option<Field>,
}

/// A field that is loaded or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// Size in bytes; of an array, of one element.
    pub size: u32,
    /// Type under qualifiers and typedefs.
    pub ty: TypeId,
}

/// The value of a relocation for an access in the object or the target; `None` if the
/// target lacks it and the instruction must be poisoned.
pub(super) fn of(
    kind: RelocationKind,
    access: Option<&Access<'_>>,
) -> Result<Option<Outcome>, Fault> {
    let plain = |value: u64, exact| {
        Ok(Some(Outcome {
            value,
            exact,
            field: None,
        }))
    };
    let there = u64::from(access.is_some());
    match (kind, access) {
        (
            RelocationKind::FieldExists
            | RelocationKind::TypeExists
            | RelocationKind::TypeMatches
            | RelocationKind::EnumvalExists,
            _,
        ) => plain(there, true),
        // Linking renumbers types without touching instructions.
        (RelocationKind::TypeIdLocal | RelocationKind::TypeIdTarget, Some(access)) => {
            plain(u64::from(access.root.0), false)
        }
        (RelocationKind::TypeSize, Some(access)) => {
            plain(u64::from(access.btf.size_of(access.root)?), true)
        }
        (
            RelocationKind::TypeIdLocal | RelocationKind::TypeIdTarget | RelocationKind::TypeSize,
            None,
        ) => plain(0, true),
        (RelocationKind::EnumvalValue, Some(access)) => plain(enumerator(access), true),
        (_, Some(access)) => field(kind, access).map(Some),
        (_, None) => Ok(None),
    }
}

/// The enumerator's value as in libbpf: 32-bit values are sign-extended, even of an
/// unsigned enum.
fn enumerator(access: &Access<'_>) -> u64 {
    let Some(step) = access.steps.first() else {
        return 0;
    };
    let ty = access.btf.ty(step.ty);
    let bits = ty.enumerator(step.index).map_or(0, |value| value.bits);
    if ty.kind() == Kind::Enum64 {
        return bits;
    }
    let [a, b, c, d, ..] = bits.to_le_bytes();
    i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned()
}

/// Size of an element of the innermost array.
fn element_size(btf: &Btf, ty: TypeId) -> Result<u32, Fault> {
    let mut ty = btf.resolve(ty)?;
    // size_of has a limit of its own; this one only ends loops.
    for _ in 0..super::access::MAX_LEN {
        let Some(array) = ty.array() else { break };
        ty = btf.resolve(array.element)?;
    }
    Ok(btf.size_of(ty.id())?)
}

fn field(kind: RelocationKind, access: &Access<'_>) -> Result<Outcome, Fault> {
    let (btf, bit_offset) = (access.btf, access.bit_offset);
    let Some(last) = access.steps.last() else {
        return Err(Fault::TooDeep);
    };
    let plain = |value, exact| {
        Ok(Outcome {
            value,
            exact,
            field: None,
        })
    };
    let member = btf.ty(last.ty).member(last.index);
    let Some(member) = member.filter(|_| last.name.is_some()) else {
        return match kind {
            RelocationKind::FieldByteOffset => {
                let field = Field {
                    size: element_size(btf, last.ty)?,
                    ty: last.ty,
                };
                Ok(Outcome {
                    value: bit_offset / 8,
                    exact: true,
                    field: Some(field),
                })
            }
            RelocationKind::FieldByteSize => plain(u64::from(btf.size_of(last.ty)?), true),
            _ => Err(Fault::Element),
        };
    };
    let ty = btf.resolve(member.ty)?;
    let (byte_offset, byte_size, bits) = match member.bitfield {
        Some(bits) => {
            let (offset, size) = bitfield(bit_offset, bits, ty.size().unwrap_or_default())?;
            (offset, size, u64::from(bits))
        }
        None => {
            let size = u64::from(btf.size_of(ty.id())?);
            (bit_offset / 8, size, size * 8)
        }
    };
    // How a bitfield is read is the compiler's choice; its sign and width are not.
    let exact = member.bitfield.is_none();
    match kind {
        RelocationKind::FieldByteOffset if exact => {
            let field = Field {
                size: element_size(btf, ty.id())?,
                ty: ty.id(),
            };
            Ok(Outcome {
                value: byte_offset,
                exact,
                field: Some(field),
            })
        }
        RelocationKind::FieldByteOffset => plain(byte_offset, exact),
        RelocationKind::FieldByteSize => plain(byte_size, exact),
        RelocationKind::FieldSigned => {
            let int = ty.int().is_some_and(|int| int.encoding == Encoding::Signed);
            plain(u64::from(int || ty.is_signed_enum()), true)
        }
        RelocationKind::FieldLshiftU64 => {
            let end = bit_offset
                .saturating_add(bits)
                .saturating_sub(byte_offset.saturating_mul(8));
            plain(64u64.wrapping_sub(end), exact)
        }
        _ => plain(64u64.wrapping_sub(bits), true),
    }
}

/// Offset and size of the load that reads a bitfield: the smallest naturally aligned one,
/// from its type's size up, that contains all its bits.
fn bitfield(bit_offset: u64, bits: u8, type_size: u32) -> Result<(u64, u64), Fault> {
    let mut size = u64::from(type_size);
    while (1..=8).contains(&size) {
        let offset = bit_offset / 8 / size * size;
        let end = bit_offset.saturating_add(u64::from(bits));
        if end <= offset.saturating_add(size).saturating_mul(8) {
            return Ok((offset, size));
        }
        size *= 2;
    }
    Err(Fault::Bitfield)
}
