//! Bodies of structs, unions and enums that clang lays out as in BTF: gaps become unnamed
//! bitfields, and unnatural layouts become `packed`.

use std::fmt::Write as _;

use super::super::kind::Kind;
use super::super::types::{Member, Type};
use super::names::identifier;
use super::{DumpError, Dumper, PUNCTUATION};

/// A gap of more bits becomes an array instead of bitfields.
const MAX_PADDING: u64 = 4096;

impl Dumper<'_> {
    /// The definition of a struct, union or enum, without the semicolon.
    pub(super) fn body(&mut self, ty: Type<'_>, level: usize) -> Result<String, DumpError> {
        self.nested(|dumper| match ty.kind() {
            Kind::Struct | Kind::Union => dumper.record(ty, level),
            Kind::Enum | Kind::Enum64 => dumper.enumeration(ty, level),
            _ => Ok(dumper.tag(ty)),
        })
    }

    fn record(&mut self, ty: Type<'_>, level: usize) -> Result<String, DumpError> {
        let (btf, indent) = (self.btf, "\t".repeat(level + 1));
        let mut text = format!("{} {{", self.tag(ty));
        let packed = self.alignments.is_packed(btf, ty)?;
        let is_struct = ty.kind() == Kind::Struct;
        let size = u64::from(ty.size().unwrap_or_default()) * 8;
        let mut align = 1;
        // The end of the last member; for a union, of its longest.
        let mut end = 0u64;
        for member in in_order(ty) {
            self.charge(ty.id(), PUNCTUATION + level + member.name.len())?;
            let own = if packed {
                1
            } else {
                self.alignments.get(btf, member.ty)?
            };
            align = align.max(own);
            let bits = match member.bitfield {
                Some(bits) => u64::from(bits),
                None => u64::from(btf.size_of(member.ty)?) * 8,
            };
            let start = u64::from(member.bit_offset);
            let name = identifier(member.name);
            if is_struct {
                if start < end {
                    // C can't express this; Rust's enums have such members.
                    let _ = write!(text, "\n{indent}/* {name} overlaps what is before it */");
                    continue;
                }
                if natural(end, own, packed, member) != start {
                    padding(&mut text, &indent, end, start);
                }
            }
            let declaration = self.declaration(member.ty, &name, level + 1)?;
            let _ = write!(text, "\n{indent}{declaration}");
            if let Some(bits) = member.bitfield {
                let _ = write!(text, ": {bits}");
            }
            text.push(';');
            end = if is_struct {
                start + bits
            } else {
                end.max(bits)
            };
        }
        let natural_size = end.next_multiple_of(u64::from(align) * 8);
        if natural_size < size {
            if is_struct {
                padding(&mut text, &indent, end, size);
            } else {
                let _ = write!(text, "\n{indent}unsigned char __size[{}];", size / 8);
            }
        }
        if text.ends_with('{') {
            text.push('}');
        } else {
            let _ = write!(text, "\n{}}}", "\t".repeat(level));
        }
        if packed {
            text.push_str(" __attribute__((packed))");
        }
        Ok(text)
    }

    fn enumeration(&mut self, ty: Type<'_>, level: usize) -> Result<String, DumpError> {
        let mut text = self.tag(ty);
        if ty.vlen() == 0 {
            return Ok(text);
        }
        let suffix = match (ty.kind(), ty.is_signed_enum()) {
            (Kind::Enum64, true) => "LL",
            (Kind::Enum64, false) => "ULL",
            _ => "",
        };
        text.push_str(" {");
        let mut narrow = true;
        for (index, value) in ty.enumerators().enumerate() {
            self.charge(ty.id(), PUNCTUATION + level + value.name.len())?;
            let name = self.names.of_enumerator(ty.id(), index, value.name);
            let number = value.value();
            narrow &= i32::try_from(number).is_ok() || u32::try_from(number).is_ok();
            let _ = write!(text, "\n{}{name} = ", "\t".repeat(level + 1));
            // The minimum has no literal of its own: C negates a positive one.
            if number == i128::from(i64::MIN) {
                text.push_str("(-9223372036854775807LL - 1),");
            } else {
                let _ = write!(text, "{number}{suffix},");
            }
        }
        let _ = write!(text, "\n{}}}", "\t".repeat(level));
        text.push_str(match ty.size() {
            Some(1) => " __attribute__((mode(byte)))",
            Some(2) => " __attribute__((mode(HI)))",
            // clang makes the enum 64 bits wide by itself if a value needs them.
            Some(8) if narrow => " __attribute__((mode(word)))",
            _ => "",
        });
        Ok(text)
    }
}

/// The members in order of offset; only Rust's need sorting.
fn in_order<'a>(ty: Type<'a>) -> Vec<Member<'a>> {
    let mut members: Vec<_> = ty.members().collect();
    members.sort_by_key(|member| member.bit_offset);
    members
}

/// The bit offset at which clang puts a member that follows `end` without padding.
fn natural(end: u64, align: u32, packed: bool, member: Member<'_>) -> u64 {
    let unit = u64::from(align) * 8;
    match member.bitfield {
        Some(_) if packed => end,
        Some(bits) if end % unit + u64::from(bits) <= unit => end,
        _ => end.next_multiple_of(unit),
    }
}

/// Pads the bits from `from` to `to`. An unnamed bitfield doesn't change a struct's
/// alignment, and stays at its offset if it doesn't cross a 64-bit unit.
fn padding(text: &mut String, indent: &str, mut from: u64, to: u64) {
    while from < to {
        let next = if to - from > MAX_PADDING && from.is_multiple_of(8) {
            let bytes = (to - from) / 8;
            let _ = write!(text, "\n{indent}unsigned char __gap_{}[{bytes}];", from / 8);
            from + bytes * 8
        } else {
            let next = (from + 1).next_multiple_of(64).min(to);
            let _ = write!(text, "\n{indent}long: {};", next - from);
            next
        };
        from = next;
    }
}
