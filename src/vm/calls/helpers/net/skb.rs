//! An `sk_buff` while a helper works on it.

use std::sync::Arc;

use crate::spec::ProgType;
use crate::spec::context::{self, Arch};
use crate::vm::events::checksum::{self, add};
use crate::vm::events::{Checksum, Headers, Kern, PacketRange, Placed};
use crate::vm::machine::{Call, Current, HelperProblem};
use crate::vm::memory::{Address, Body, SharedBytes, Space};

/// `ETH_P_IP`.
pub const IPV4: u16 = 0x0800;
/// `ETH_P_IPV6`.
pub const IPV6: u16 = 0x86dd;

/// The packet of the running program. Changes of its ends and headers take effect with
/// [`commit`](Self::commit).
pub struct Skb<'a> {
    /// The program type.
    pub prog_type: ProgType,
    placed: &'a mut Placed,
    space: &'a mut Space,
    block: Arc<SharedBytes>,
    context: Arc<SharedBytes>,
    meta_len: usize,
    /// Offset of its first byte in the block.
    pub data: usize,
    /// Offset of its end in the block, exclusive.
    pub end: usize,
    /// Offsets of its headers.
    pub headers: Headers,
}

fn bytes_at(space: &Space, address: Address) -> Option<Arc<SharedBytes>> {
    match &space.region(address)?.body {
        Body::Bytes { bytes, .. } => Some(bytes.clone()),
        Body::Elements(_) | Body::Pages(_) | Body::Object(_) | Body::Opaque => None,
    }
}

impl<'a> Skb<'a> {
    /// The packet of the context in argument 1.
    pub fn of(call: &'a mut Call<'_>) -> Result<Self, HelperProblem> {
        let wrong = call.wrong(1, "the context of a packet");
        let context = call.arg(1);
        let found = call.machine.current_mut();
        let found = found.filter(|(current, _)| current.placed.r1() == context);
        found.and_then(Self::open).ok_or(wrong)
    }

    fn open((current, space): (&'a mut Current, &'a mut Space)) -> Option<Self> {
        let placed = &mut current.placed;
        let packet = placed.packet.as_ref()?;
        let range = placed.packet_range(space)?;
        Some(Self {
            prog_type: current.prog_type,
            block: bytes_at(space, packet.region)?,
            context: bytes_at(space, placed.context)?,
            meta_len: range.data.checked_sub(range.meta)?,
            data: range.data,
            end: range.end,
            headers: packet.headers?,
            placed,
            space,
        })
    }

    /// Length of the packet in bytes.
    pub const fn len(&self) -> usize {
        self.end.saturating_sub(self.data)
    }

    /// Kernel data outside the context.
    pub fn kern(&mut self) -> &mut Kern {
        &mut self.placed.kern
    }

    /// The value of a field of `__sk_buff`.
    pub fn field(&self, name: &str) -> u32 {
        let value =
            field(self.prog_type, name).and_then(|(at, size)| self.context.load(at, size.min(4)));
        value
            .and_then(|value| u32::try_from(value).ok())
            .unwrap_or(0)
    }

    /// Sets a field of `__sk_buff`.
    pub fn set_field(&self, name: &str, value: u64) {
        if let Some((at, size)) = field(self.prog_type, name) {
            // The field is in the context's layout.
            let _ = self.context.store(at, size, value);
        }
    }

    /// `skb->protocol` in host order.
    pub fn protocol(&self) -> u16 {
        let [low, high, ..] = self.field("protocol").to_le_bytes();
        u16::from_be_bytes([low, high])
    }

    /// Sets `skb->protocol`.
    pub fn set_protocol(&self, protocol: u16) {
        self.set_field(
            "protocol",
            u16::from_le_bytes(protocol.to_be_bytes()).into(),
        );
    }

    /// Whether it is a GSO packet (`skb_is_gso`).
    pub fn is_gso(&self) -> bool {
        self.field("gso_size") != 0
    }

    /// Clears the GSO fields (`skb_gso_reset`).
    pub fn reset_gso(&self) {
        self.set_field("gso_size", 0);
        self.set_field("gso_segs", 0);
    }

    /// Clears its hash (`skb_clear_hash`).
    pub fn clear_hash(&self) {
        self.set_field("hash", 0);
    }

    /// Length of the link header (`skb_mac_header_len`).
    pub const fn link_header_len(&self) -> usize {
        self.headers.network.saturating_sub(self.headers.mac)
    }

    /// Copies out bytes at an offset in the packet; `None` if they are outside.
    pub fn read(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len)? > self.len() {
            return None;
        }
        self.block.copy(self.data + at, len)
    }

    /// Overwrites bytes at an offset in the packet; false if they are outside.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let fits = at
            .checked_add(bytes.len())
            .is_some_and(|end| end <= self.len());
        fits && self.block.write(self.data + at, bytes).is_some()
    }

    /// Copies bytes within the packet (`memmove`).
    pub fn copy_within(&self, from: usize, to: usize, len: usize) {
        if let Some(bytes) = self.read(from, len) {
            self.write(to, &bytes);
        }
    }

    /// Prepends bytes with undefined contents (`skb_push`); false if there is no room.
    pub const fn push(&mut self, len: usize) -> bool {
        match self.data.checked_sub(len) {
            Some(data) if data >= self.meta_len => {
                self.data = data;
                true
            }
            _ => false,
        }
    }

    /// Removes bytes from the start (`skb_pull`); false if the packet is shorter.
    pub const fn pull(&mut self, len: usize) -> bool {
        if len > self.len() {
            return false;
        }
        self.data += len;
        true
    }

    /// Changes the length; false if there is no room.
    pub fn resize(&mut self, len: usize) -> bool {
        let old = self.end;
        match self
            .data
            .checked_add(len)
            .filter(|end| *end <= self.block.len())
        {
            Some(end) => {
                self.end = end;
                let grown = vec![0; end.saturating_sub(old)];
                // In bounds, as `end` is.
                let _ = self.block.write(old, &grown);
                true
            }
            None => false,
        }
    }

    /// Subtracts removed bytes from the complete checksum (`skb_postpull_rcsum`).
    pub fn subtract_from_checksum(&mut self, at: usize, len: usize) {
        if let Checksum::Complete(Some(sum)) = self.placed.kern.checksum {
            let bytes = self.read(at, len).unwrap_or_default();
            let part = checksum::partial(&bytes, 0);
            self.placed.kern.checksum = Checksum::Complete(Some(!add(!sum, part)));
        }
    }

    /// Adds new bytes to the complete checksum (`skb_postpush_rcsum`).
    pub fn add_to_checksum(&mut self, at: usize, len: usize) {
        if let Checksum::Complete(Some(sum)) = self.placed.kern.checksum {
            let bytes = self.read(at, len).unwrap_or_default();
            let part = checksum::partial(&bytes, 0);
            self.placed.kern.checksum = Checksum::Complete(Some(add(sum, part)));
        }
    }

    /// Drops the state of a verified checksum (`__skb_reset_checksum_unnecessary`).
    pub fn reset_unnecessary(&mut self) {
        if let Checksum::Unnecessary { .. } = self.placed.kern.checksum {
            self.placed.kern.checksum = Checksum::None;
        }
    }

    /// Applies the changes to the context's pointers and length. False if the metadata before
    /// the packet no longer fits.
    pub fn commit(self) -> bool {
        let Some(meta) = self.data.checked_sub(self.meta_len) else {
            return false;
        };
        let range = PacketRange {
            meta,
            data: self.data,
            end: self.end,
        };
        if let Some(packet) = &mut self.placed.packet {
            packet.headers = Some(self.headers);
        }
        self.placed.move_packet(self.space, range)
    }
}

/// Offset and size of a field in this program type's context.
fn field(prog_type: ProgType, name: &str) -> Option<(usize, usize)> {
    let layout = context::layout(prog_type.info().context, Arch::HOST)?;
    let (offset, size) = layout.find(name)?;
    Some((offset as usize, size as usize))
}
