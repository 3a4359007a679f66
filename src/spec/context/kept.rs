//! Fields of `__sk_buff` that the kernel stores in fewer bytes than programs see
//! (`bpf_convert_ctx_access`, `net/core/filter.c`).
//!
//! The kernel rewrites each access to a field of `__sk_buff` to an access to a field of
//! `sk_buff`. A partial load extracts its bytes from the whole field only if it is narrower
//! than the stored size (`convert_ctx_accesses`, `kernel/bpf/verifier.c`); any other load
//! returns the whole field. A store writes as many bytes as are stored.

use super::{ContextKind, packet};

/// The size of the fields.
const WHOLE: u32 = 4;

/// Fields, and how many of their four bytes are stored.
const KEPT: &[(&str, u32)] = &[
    ("pkt_type", 1),
    ("queue_mapping", 2),
    ("protocol", 2),
    ("vlan_tci", 2),
    ("vlan_proto", 2),
    ("tc_index", 2),
    ("tc_classid", 2),
    ("family", 2),
    ("remote_port", 2),
    ("local_port", 2),
    ("gso_segs", 2),
    ("gso_size", 2),
];

/// The field at an offset and its stored size.
fn kept(kind: ContextKind, offset: u32) -> Option<(&'static super::Field, u32)> {
    if kind != ContextKind::SkBuff {
        return None;
    }
    let field = packet::SK_BUFF.at(offset)?;
    let (_, kept) = KEPT.iter().find(|(name, _)| *name == field.name)?;
    Some((field, *kept))
}

/// The load that a load of `size` bytes at an offset of a context becomes: the same, or
/// that of the whole field. A sign-extending load then extends from the size it requested.
#[must_use]
pub fn loaded_as(kind: ContextKind, offset: u32, size: u32) -> (u32, u32) {
    if size >= WHOLE {
        return (offset, size);
    }
    match kept(kind, offset) {
        Some((field, kept)) if (kept..field.size()).contains(&size) => {
            // A field's first bytes contain all that is stored, except for the port, which
            // the kernel shifts to the upper half after the load.
            let is_low = offset == field.offset && field.name != SHIFTED;
            if is_low {
                (offset, size)
            } else {
                (field.offset, field.size())
            }
        }
        _ => (offset, size),
    }
}

/// The field whose last bytes are stored.
const SHIFTED: &str = "remote_port";

/// The value that a store at an offset of a context writes; `None` if the kernel doesn't
/// change the field.
#[must_use]
pub fn stored_as(kind: ContextKind, offset: u32, value: u64) -> Option<u64> {
    /// `NO_QUEUE_MAPPING`.
    const NO_QUEUE: u64 = 0xffff;
    match kept(kind, offset) {
        Some((field, _)) if field.name == "queue_mapping" && value & 0xffff_ffff >= NO_QUEUE => {
            None
        }
        Some((_, kept)) => Some(value & ((1 << (8 * kept)) - 1)),
        None => Some(value),
    }
}

/// Whether a store at an offset of a context does more than write bytes.
#[must_use]
pub fn is_stored_apart(kind: ContextKind, offset: u32) -> bool {
    kept(kind, offset).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_not_kept_give_the_whole() {
        let load = |offset, size| loaded_as(ContextKind::SkBuff, offset, size);
        // pkt_type: one byte of four
        assert_eq!([load(5, 1), load(6, 2)], [(4, 4); 2]);
        assert_eq!(load(4, 1), (4, 1), "they are all that is kept");
        // vlan_tci: two of four
        assert_eq!([load(26, 2), load(24, 4)], [(24, 4); 2]);
        assert_eq!([load(132, 2), load(134, 2)], [(132, 4); 2], "remote_port");
        assert_eq!([load(25, 1), load(27, 1)], [(25, 1), (27, 1)]);
        // mark: all four
        assert_eq!([load(10, 2), load(9, 1)], [(10, 2), (9, 1)]);
        assert_eq!(loaded_as(ContextKind::XdpMd, 6, 2), (6, 2));
    }

    #[test]
    fn stores_keep_what_there_is_room_for() {
        let store = |offset, value| stored_as(ContextKind::SkBuff, offset, value);
        assert_eq!(store(44, 0x1234_5678), Some(0x5678), "tc_index");
        assert_eq!(store(8, 0x1234_5678), Some(0x1234_5678), "mark");
        assert_eq!((store(12, 0xfffe), store(12, 0xffff)), (Some(0xfffe), None));
        assert!(is_stored_apart(ContextKind::SkBuff, 44));
        assert!(!is_stored_apart(ContextKind::SkBuff, 8));
    }

    #[test]
    fn every_name_is_a_field() {
        for (name, kept) in KEPT {
            let (_, size) = packet::SK_BUFF
                .find(name)
                .unwrap_or_else(|| panic!("{name}"));
            assert!(*kept < size, "{name}");
        }
    }
}
