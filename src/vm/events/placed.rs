//! A placed event: memory that programs and helpers change, and how to read it back.

use std::ops::Range;

use smallvec::SmallVec;

use super::attach::Site;
use super::checksum;
use super::kern::{Checksum, Headers, KernSide};
use super::pointees::Regions;
use super::window::{PacketRange, Window};
use crate::spec::PacketAccess;
use crate::vm::memory::{Address, Body as Bytes, PointerField, SharedBytes, Space};
use crate::vm::world::Socket;

/// The regions of an event while programs run on it.
///
/// Programs and helpers change them in place. Read back the changes, then
/// [`remove`](Placed::remove) the regions.
#[derive(Debug)]
pub struct Placed {
    /// The context; `r1` holds its register value.
    pub context: Address,
    /// The packet, or the data between the context's pair of pointers.
    pub packet: Option<Box<PlacedPacket>>,
    /// The attach-point data that helpers return.
    pub site: Site,
    /// Regions that other pointers of the context point to: a socket, the flow keys.
    pub(super) others: Regions,
    /// Kernel data outside the context.
    pub kern: KernSide,
    /// A socket that belongs to this event only, used if
    /// [`Kern::socket`](super::Kern::socket) is `None`.
    pub socket: Option<Box<Socket>>,
    /// The objects of which the program gets a reference ([`Layout::references`](super::Layout)).
    pub references: SmallVec<[u64; 1]>,
}

/// A packet in memory.
#[derive(Debug)]
pub struct PlacedPacket {
    /// Headroom, metadata, packet and tailroom; only metadata and packet are accessible.
    pub region: Address,
    /// The bytes beyond the linear part: the fragments of a long XDP packet.
    pub frags: Vec<u8>,
    /// Offset of the packet, after its metadata.
    pub(super) data_offset: usize,
    /// Offsets of the headers, for an `sk_buff`.
    pub headers: Option<Headers>,
    /// Start and end of the whole message in the block, if the program sees only a part.
    pub message: Option<(usize, usize)>,
    /// The fields of the context with the pointers.
    pub(super) window: Window,
    /// Whether programs may dereference the pointers.
    pub(super) access: PacketAccess,
}

impl Placed {
    /// What `r1` holds when a program starts.
    #[must_use]
    pub const fn r1(&self) -> u64 {
        self.context.register()
    }

    /// The current bytes of the context; pointers in it read as zero.
    #[must_use]
    pub fn context_bytes(&self, space: &Space) -> Vec<u8> {
        block(space, self.context).map_or_else(Vec::new, |(bytes, _)| bytes.to_vec())
    }

    /// The current packet without its metadata; `None` if there is none.
    #[must_use]
    pub fn packet_bytes(&self, space: &Space) -> Option<Vec<u8>> {
        let packet = self.packet.as_ref()?;
        let range = self.packet_range(space)?;
        let (start, end) = packet.message.unwrap_or((range.data, range.end));
        let (bytes, _) = block(space, packet.region)?;
        let mut copy = bytes.copy(start, end.checked_sub(start)?)?;
        copy.extend_from_slice(&packet.frags);
        Some(copy)
    }

    /// A copy of the metadata before the packet; `None` if there is no packet.
    #[must_use]
    pub fn metadata(&self, space: &Space) -> Option<Vec<u8>> {
        let packet = self.packet.as_ref()?;
        let range = self.packet_range(space)?;
        let (bytes, _) = block(space, packet.region)?;
        bytes.copy(range.meta, range.data.checked_sub(range.meta)?)
    }

    /// Bytes of the packet for a legacy load (`LD_ABS`, `LD_IND`). `at` is an offset from the
    /// start of the packet, or from its network or Ethernet header for offsets from
    /// `SKF_NET_OFF` or `SKF_LL_OFF` (`bpf_internal_load_pointer_neg_helper`,
    /// `kernel/bpf/core.c`). `None` if the bytes are outside the packet.
    #[must_use]
    pub fn legacy_bytes(&self, space: &Space, at: i32, len: usize) -> Option<Vec<u8>> {
        const NETWORK: i32 = -0x10_0000;
        const LINK: i32 = -0x20_0000;
        let packet = self.packet.as_ref()?;
        let range = self.packet_range(space)?;
        let (base, at) = match at {
            0.. => (range.data, at),
            NETWORK..0 => (packet.headers?.network, at - NETWORK),
            LINK..NETWORK => (packet.headers?.mac, at - LINK),
            _ => return None,
        };
        let start = base.checked_add(usize::try_from(at).ok()?)?;
        if start.checked_add(len)? > range.end {
            return None;
        }
        let (bytes, _) = block(space, packet.region)?;
        bytes.copy(start, len)
    }

    /// Computes the sum of a complete checksum that the test left open.
    pub(super) fn complete_checksum(&mut self, space: &Space) {
        if self.kern.checksum != Checksum::Complete(None) {
            return;
        }
        let covered = self.packet.as_ref().and_then(|packet| {
            let (bytes, window) = block(space, packet.region)?;
            let start = packet.headers?.network;
            bytes.copy(start, window.end.checked_sub(start)?)
        });
        let sum = checksum::partial(&covered.unwrap_or_default(), 0);
        self.kern.checksum = Checksum::Complete(Some(sum));
    }

    /// Changes the value of another pointer of the context.
    pub(in crate::vm) fn point(&mut self, space: &mut Space, offset: u32, to: u64) {
        if let Some(mut context) = space.region_mut(self.context) {
            let at = |field: &&mut PointerField| field.offset == offset;
            match context.pointers.iter_mut().find(at) {
                Some(field) => field.value = to,
                None => context.pointers.push(PointerField {
                    offset,
                    size: 8,
                    value: to,
                }),
            }
        }
    }

    /// The region that another pointer of the context points to: `sk`, `flow_keys`.
    #[must_use]
    pub fn other(&self, name: &str) -> Option<Address> {
        let found = self.others.iter().find(|(field, _)| *field == name);
        found.map(|(_, address)| *address)
    }

    /// The address of the packet's block.
    #[must_use]
    pub fn packet_base(&self) -> Option<Address> {
        self.packet.as_ref().map(|packet| packet.region)
    }

    /// The current position of the packet in its block.
    #[must_use]
    pub fn packet_range(&self, space: &Space) -> Option<PacketRange> {
        let packet = self.packet.as_ref()?;
        let (_, window) = block(space, packet.region)?;
        let meta = window.start;
        let data = packet.data_offset;
        Some(PacketRange {
            meta,
            data,
            end: window.end,
        })
    }

    /// Moves the ends of the packet within its block, as `bpf_xdp_adjust_head`, `…_tail` and
    /// `…_meta` do; the accessible bytes, the context's pointers and its length follow.
    /// Returns false and changes nothing if the range is outside the block or out of order.
    /// The helper checks the headroom that the kernel reserves.
    pub fn move_packet(&mut self, space: &mut Space, range: PacketRange) -> bool {
        let Some(packet) = &mut self.packet else {
            return false;
        };
        let Some(mut region) = space.region_mut(packet.region) else {
            return false;
        };
        let Bytes::Bytes { bytes, window } = &mut region.body else {
            return false;
        };
        let ordered = range.meta <= range.data && range.data <= range.end;
        if !ordered || range.end > bytes.len() {
            return false;
        }
        *window = range.meta..range.end;
        packet.data_offset = range.data;
        drop(region);
        let base = packet.region;
        let Some(mut context) = space.region_mut(self.context) else {
            return false;
        };
        if let (Some(offset), Bytes::Bytes { bytes, .. }) = (packet.window.len, &context.body) {
            let len = range.end - range.data + packet.frags.len();
            // An offset from a layout of this context: the store is in bounds.
            let _ = bytes.store(offset as usize, 4, len as u64);
        }
        if packet.access == PacketAccess::None {
            return true;
        }
        for (field, at) in packet.window.pointers(range) {
            let pointer = PointerField {
                offset: field.offset,
                size: field.size,
                value: base.plus(at as u64),
            };
            match context
                .pointers
                .iter_mut()
                .find(|old| old.offset == field.offset)
            {
                Some(old) => *old = pointer,
                None => context.pointers.push(pointer),
            }
        }
        true
    }

    /// Frees the regions: pointers to them become stale.
    pub fn remove(&self, space: &mut Space) {
        space.remove(self.context);
        if let Some(packet) = &self.packet {
            space.remove(packet.region);
        }
        for (_, address) in &self.others {
            space.remove(*address);
        }
    }
}

/// The block of a region, and its accessible window.
fn block(space: &Space, address: Address) -> Option<(&SharedBytes, Range<usize>)> {
    match &space.region(address)?.body {
        Bytes::Bytes { bytes, window } => Some((bytes, window.clone())),
        Bytes::Elements(_) | Bytes::Pages(_) | Bytes::Object(_) | Bytes::Opaque => None,
    }
}
