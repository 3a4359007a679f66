//! The checks of a type table when it is opened.
//!
//! Safety properties are checked as strictly as in the kernel (`kernel/bpf/btf.c`, the
//! `*_check_meta` functions): records inside the table, reserved bits, string offsets, type
//! ids, sizes. Rules about names and order are not checked here: compilers break them (Rust
//! names pointers; clang emits sections without sizes until they are linked), and no code
//! here depends on them. Reference loops are not rejected here: every traversal has a depth
//! limit.

use std::ops::Range;

use super::error::{BtfError, Problem, TypeFault};
use super::kind::{HEADER_WORDS, Kind, Vlen, Word};
use crate::util::TypeId;

/// Bits of the info word that have a meaning: `vlen`, kind, kind flag.
const INFO_MASK: u32 = 0x9f00_ffff;
/// Bits of an integer's word that have a meaning: encoding, offset, bits.
const INT_MASK: u32 = 0x0fff_ffff;
/// The widest integer (`__int128`).
const MAX_INT_BITS: u32 = 128;

/// Kind, `vlen` and kind flag of an info word, if the kind is known.
pub(super) fn split_info(info: u32) -> (Option<Kind>, u16, bool) {
    let [low, high, _, top] = info.to_le_bytes();
    let kind = match Kind::from_number(top & 0x1f) {
        Some(Kind::Void) | None => None,
        kind => kind,
    };
    (kind, u16::from_le_bytes([low, high]), top & 0x80 != 0)
}

/// Packs an info word.
pub(super) fn join_info(kind: Kind, vlen: u16, kind_flag: bool) -> u32 {
    u32::from(vlen) | u32::from(kind as u8) << 24 | u32::from(kind_flag) << 31
}

/// Limits for the references in a table.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// Offset of the type table in the section, in bytes, for errors.
    pub start: usize,
    /// Id of the table's first type.
    pub first_id: u32,
    /// Length of all strings, the base's included.
    pub strings: u32,
    /// Offsets, in order, of strings too long to be names.
    pub long: &'a [Range<u32>],
}

impl Limits<'_> {
    /// Whether the string at an offset is too long to be a name.
    fn is_long(&self, offset: u32) -> bool {
        let after = self.long.partition_point(|range| range.start <= offset);
        let range = after.checked_sub(1).and_then(|last| self.long.get(last));
        range.is_some_and(|range| range.contains(&offset))
    }

    /// An error about the type at this index.
    fn error(&self, word: usize, index: usize, fault: TypeFault) -> BtfError {
        let id = TypeId(self.first_id.saturating_add(TypeId::from_index(index).0));
        BtfError::btf(
            self.start.saturating_add(word * 4),
            Problem::Type { id, fault },
        )
    }
}

/// Finds the start of each record, in words, and runs the checks that need only the record
/// itself.
pub(super) fn index(words: &[u32], limits: Limits<'_>) -> Result<Vec<u32>, BtfError> {
    // The kernel's types average six words; hostile input can't make this larger than the
    // table itself.
    let mut index = Vec::with_capacity(words.len() / 6 + 1);
    let mut at = 0usize;
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        let len =
            record(rest, limits.strings).map_err(|fault| limits.error(at, index.len(), fault))?;
        index.push(u32::try_from(at).map_err(|_| BtfError::btf(at, Problem::TooBig))?);
        at += len;
    }
    Ok(index)
}

/// Checks the record at the start of `words`; returns its length in words.
fn record(words: &[u32], strings: u32) -> Result<usize, TypeFault> {
    let truncated = |wanted: usize| TypeFault::Truncated {
        wanted: wanted * 4,
        left: words.len() * 4,
    };
    let &[name, info, third, ..] = words else {
        return Err(truncated(HEADER_WORDS));
    };
    let (kind, vlen, kind_flag) = split_info(info);
    if info & !INFO_MASK != 0 {
        return Err(TypeFault::Info(info));
    }
    let Some(kind) = kind else {
        return Err(TypeFault::Kind(info.to_le_bytes()[3] & 0x1f));
    };
    if name >= strings {
        return Err(TypeFault::Name(name));
    }
    let shape = kind.shape();
    let unused = |field, value| Err(TypeFault::Unused { kind, field, value });
    if shape.vlen == Vlen::Zero && vlen != 0 {
        return unused("vlen", u32::from(vlen));
    }
    if kind_flag && !shape.kind_flag {
        return unused("kind flag", 1);
    }
    if matches!(kind, Kind::Array | Kind::Fwd) && third != 0 {
        return unused("type", third);
    }
    let len = shape.words(vlen);
    let record = words.get(..len).ok_or_else(|| truncated(len))?;
    let tail = record.get(HEADER_WORDS..).unwrap_or_default();
    details(kind, vlen, kind_flag, third, tail)?;
    Ok(len)
}

/// The checks of single kinds; `tail` is the record without its three common words.
fn details(
    kind: Kind,
    vlen: u16,
    kind_flag: bool,
    third: u32,
    tail: &[u32],
) -> Result<(), TypeFault> {
    let first = tail.first().copied().unwrap_or_default();
    match kind {
        Kind::Int => {
            if first & !INT_MASK != 0 {
                return Err(TypeFault::IntEncoding(first));
            }
            let [bits, _, offset, _] = first.to_le_bytes();
            let end = u32::from(bits) + u32::from(offset);
            if end > MAX_INT_BITS || u64::from(end) > u64::from(third) * 8 {
                return Err(TypeFault::IntBits {
                    bits,
                    offset,
                    size: third,
                });
            }
        }
        Kind::Struct | Kind::Union => {
            for (index, member) in tail.chunks_exact(3).enumerate() {
                let offset = member.get(2).copied().unwrap_or_default();
                let bit = if kind_flag {
                    offset & 0x00ff_ffff
                } else {
                    offset
                };
                if u64::from(bit) > u64::from(third) * 8 {
                    return Err(TypeFault::Member {
                        index,
                        bit,
                        size: third,
                    });
                }
            }
        }
        // A forward declaration of an enum has no values and may have no size.
        Kind::Enum | Kind::Enum64
            if !(matches!(third, 1 | 2 | 4 | 8) || (third == 0 && vlen == 0)) =>
        {
            return Err(TypeFault::Size { kind, size: third });
        }
        Kind::Float if !matches!(third, 2 | 4 | 8 | 12 | 16) => {
            return Err(TypeFault::Size { kind, size: third });
        }
        Kind::Func if vlen > 2 => return Err(TypeFault::Linkage(u32::from(vlen))),
        Kind::Var if first > 2 => return Err(TypeFault::Linkage(first)),
        Kind::DeclTag if first.cast_signed() < -1 => {
            return Err(TypeFault::Component(first.cast_signed()));
        }
        _ => {}
    }
    Ok(())
}

/// Checks every string offset and type id in the table against `strings` and `count` (the
/// number of all types, including the base's and `void`).
pub(super) fn references(
    words: &[u32],
    index: &[u32],
    limits: Limits<'_>,
    count: u32,
) -> Result<(), BtfError> {
    let fault = |word: u32, meaning: Word| match meaning {
        Word::Name if word >= limits.strings => Some(TypeFault::Name(word)),
        Word::Name if limits.is_long(word) => Some(TypeFault::LongName(word)),
        Word::Type if word >= count => Some(TypeFault::Reference { to: word, count }),
        _ => None,
    };
    let first = |words: &[u32], meanings: &[Word]| {
        let mut pairs = words.iter().zip(meanings);
        pairs.find_map(|(word, meaning)| fault(*word, *meaning))
    };
    for (number, &start) in index.iter().enumerate() {
        let start = start as usize;
        let record = words.get(start..).unwrap_or_default();
        let Some(&info) = record.get(1) else { continue };
        let (Some(kind), vlen, _) = split_info(info) else {
            continue;
        };
        // Part by part, not word by word with `meanings`: it is half of the time of opening BTF.
        let shape = kind.shape();
        let record = record.get(..shape.words(vlen)).unwrap_or(record);
        let (header, tail) = record.split_at(HEADER_WORDS.min(record.len()));
        let (fixed, items) = tail.split_at(shape.fixed.len().min(tail.len()));
        let found = first(header, &shape.header())
            .or_else(|| first(fixed, shape.fixed))
            .or_else(|| {
                let mut items = items.chunks(shape.item.len().max(1));
                items.find_map(|item| first(item, shape.item))
            });
        if let Some(fault) = found {
            return Err(limits.error(start, number, fault));
        }
    }
    Ok(())
}
