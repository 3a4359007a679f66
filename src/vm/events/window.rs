//! The fields of a context that point into the bytes of an event.

use super::layout::Layout;

/// The position of a packet in its block: offsets from the start of the headroom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRange {
    /// Start of the metadata; `data` if there is none.
    pub meta: usize,
    /// Start of the packet.
    pub data: usize,
    /// End of the packet, exclusive.
    pub end: usize,
}

/// A pointer field of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// Bytes from the start of the context.
    pub offset: u32,
    /// Its size: 4 or 8 bytes.
    pub size: u32,
}

/// The fields of a context that point to the ends of a packet or buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    meta: Option<Slot>,
    data: Slot,
    end: Slot,
    /// Offset of the `u32` with the length.
    pub len: Option<u32>,
}

/// Names of the fields for start, end, metadata start and length.
const NAMES: &[(&str, &str, &str, &str)] = &[
    ("data", "data_end", "data_meta", "len"),
    ("data", "data_end", "data_meta", "size"),
    ("optval", "optval_end", "", ""),
    ("skb_data", "skb_data_end", "", "skb_len"),
];

impl Window {
    /// The pointer fields of a context; `None` if it has no pair of them.
    pub fn of(layout: &Layout) -> Option<Self> {
        let slot = |name: &str| {
            let field = layout.fields.iter().find(|field| field.is_named(name))?;
            Some(Slot {
                offset: field.offset,
                size: field.size(),
            })
        };
        let windows = NAMES.iter().filter_map(|(data, end, meta, len)| {
            Some(Self {
                meta: slot(meta),
                data: slot(data)?,
                end: slot(end)?,
                len: slot(len).map(|slot| slot.offset),
            })
        });
        // The length has different names in different structs: use the row that matches.
        let all: Vec<_> = windows.collect();
        let with_len = all.iter().find(|window| window.len.is_some());
        with_len.or(all.first()).copied()
    }

    /// The pointer fields and the offset that each points to.
    pub fn pointers(&self, range: PacketRange) -> impl Iterator<Item = (Slot, usize)> {
        let meta = self.meta.map(|slot| (slot, range.meta));
        [(self.data, range.data), (self.end, range.end)]
            .into_iter()
            .chain(meta)
    }
}
