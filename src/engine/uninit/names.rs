//! The names in C of undefined bytes.

use crate::btf::{Btf, Leaf};
use crate::util::TypeId;
use crate::vm::LeakedBytes;

/// The undefined bytes of an object: `mask` has each byte's undefined bits.
pub(super) fn name(types: Option<(&Btf, TypeId)>, mask: &[u8]) -> Vec<LeakedBytes> {
    let leaves = types.map_or_else(Vec::new, |(btf, ty)| btf.leaves(ty));
    let Some((btf, ty)) = types.filter(|_| !leaves.is_empty()) else {
        return unnamed(mask, 0, mask.len());
    };
    let whole = btf.type_name(ty);
    let mut found = Vec::new();
    let (mut end, mut before) = (0, None::<&Leaf>);
    for leaf in &leaves {
        found.extend(hole(mask, end..leaf.bit, before, &whole));
        found.extend(in_leaf(mask, leaf, &whole));
        end = end.max(leaf.bit + leaf.bits);
        before = Some(leaf);
    }
    let size = u64::from(btf.size_of(ty).unwrap_or_default());
    found.extend(hole(mask, end..(size * 8).max(end), before, &whole));
    let rest = usize::try_from(size).unwrap_or(usize::MAX);
    found.extend(unnamed(mask, rest.min(mask.len()), mask.len()));
    found
}

/// Runs of undefined bytes without a name.
fn unnamed(mask: &[u8], from: usize, to: usize) -> Vec<LeakedBytes> {
    let mut found: Vec<LeakedBytes> = Vec::new();
    for at in (from..to).filter(|at| mask.get(*at).is_some_and(|bits| *bits != 0)) {
        match found.last_mut() {
            Some(run) if run.offset + run.len == at => run.len += 1,
            _ => found.push(LeakedBytes::new(at, 1, None)),
        }
    }
    found
}

/// The undefined bits of a range: the first, the last, and their number.
fn undefined(mask: &[u8], bits: std::ops::Range<u64>) -> Option<(u64, u64, u64)> {
    let is_set = |bit: &u64| {
        let byte = usize::try_from(bit / 8).ok().and_then(|at| mask.get(at));
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    };
    let limit = mask.len() as u64 * 8;
    let mut set = (bits.start..bits.end.min(limit)).filter(is_set);
    let first = set.next()?;
    let (last, more) = set.fold((first, 0), |(_, n), bit| (bit, n + 1));
    Some((first, last, more + 1))
}

/// Bytes from a bit to another, with a name.
fn bytes(first: u64, last: u64, name: String) -> LeakedBytes {
    let at = |bit: u64| usize::try_from(bit / 8).unwrap_or(usize::MAX);
    LeakedBytes::new(at(first), at(last) - at(first) + 1, Some(name))
}

/// Undefined bits between fields.
fn hole(
    mask: &[u8],
    bits: std::ops::Range<u64>,
    before: Option<&Leaf>,
    whole: &str,
) -> Option<LeakedBytes> {
    let (first, last, count) = undefined(mask, bits.clone())?;
    let of_bytes = bits.start.is_multiple_of(8) && bits.end.is_multiple_of(8);
    let (count, unit) = match of_bytes {
        true => (last / 8 - first / 8 + 1, "byte"),
        false => (count, "bit"),
    };
    let place = match before {
        Some(leaf) => format!("after field `{}` of {whole}", leaf.path),
        None => format!("at the start of {whole}"),
    };
    let name = format!("{} of padding {place}", number(count, unit));
    Some(bytes(first, last, name))
}

/// `1 bit`, `2 bits`.
fn number(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// Undefined bits of a field.
fn in_leaf(mask: &[u8], leaf: &Leaf, whole: &str) -> Option<LeakedBytes> {
    let (first, last, count) = undefined(mask, leaf.bit..leaf.bit + leaf.bits)?;
    let field = match leaf.path.is_empty() {
        true => whole.to_owned(),
        false => format!("field `{}` of {whole}", leaf.path),
    };
    if count == leaf.bits {
        return Some(bytes(first, last, field));
    }
    let base = leaf.bit / 8;
    let (from, to) = (first / 8 - base, last / 8 - base);
    let is_whole = leaf.bit.is_multiple_of(8) && count == (to - from + 1) * 8;
    let name = match (is_whole, from == to) {
        (false, _) if !leaf.is_array => format!("{} of {field}", number(count, "bit")),
        (_, true) => format!("byte {from} of {field}"),
        _ if count < (to - from + 1) * 8 => format!("some of bytes {from} to {to} of {field}"),
        _ => format!("bytes {from} to {to} of {field}"),
    };
    Some(bytes(first, last, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Array, Builder, Encoding, Member};

    #[test]
    fn fields_holes_and_bits_have_names() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let byte = b.int("char", 1, Encoding::Char);
        let text = b.array(Array {
            element: byte,
            index: int,
            len: 8,
        });
        let member = |name, ty, bit_offset, bitfield| Member {
            name,
            ty,
            bit_offset,
            bitfield,
        };
        let event = b.structure(
            "event",
            24,
            &[
                member("comm_len", byte, 0, None),
                member("pid", int, 32, None),
                member("comm", text, 64, None),
                member("flag", int, 128, Some(3)),
                member("last", byte, 160, None),
            ],
        );
        let btf = b.build().unwrap();
        let shown = |mask: &[u8]| {
            let found = name(Some((&btf, event)), mask);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut mask = [0; 24];
        assert_eq!(shown(&mask), Vec::<String>::new());
        mask[1..4].fill(0xff);
        mask[4..8].fill(0xff);
        mask[13..16].fill(0xff);
        mask[16] = 0b1111_1010;
        mask[23] = 0xff;
        assert_eq!(
            shown(&mask),
            [
                "3 bytes of padding after field `comm_len` of struct event (offset 1)",
                "field `pid` of struct event (offset 4)",
                "bytes 5 to 7 of field `comm` of struct event (offset 13)",
                "1 bit of field `flag` of struct event (offset 16)",
                "5 bits of padding after field `flag` of struct event (offset 16)",
                "1 byte of padding after field `last` of struct event (offset 23)",
            ]
        );
        // A record that is longer than its type, and one of no known type.
        let longer = [&[0; 24][..], &[0xff; 2]].concat();
        assert_eq!(shown(&longer), ["bytes 24 to 25"]);
        let plain = name(None, &[0, 0xff, 1, 0, 0xff]);
        let plain: Vec<_> = plain.iter().map(ToString::to_string).collect();
        assert_eq!(plain, ["bytes 1 to 2", "byte 4"]);
        let number = name(Some((&btf, int)), &[0, 0, 0xff, 0xff]);
        assert_eq!(number[0].to_string(), "bytes 2 to 3 of int (offset 2)");
    }
}
