//! The running program's packet for helpers: access to its bytes, headroom and fragments,
//! changes of its ends, and whether the program may write it.

use std::sync::Arc;

use crate::spec::{PacketAccess, ProgType, context};
use crate::vm::events::{Headers, Kern, PacketRange};
use crate::vm::machine::{Call, Current, HelperProblem};
use crate::vm::memory::{Address, Body, SharedBytes, Space};

/// The current packet.
pub(in crate::vm) struct Packet<'a> {
    /// The position in its block.
    pub range: PacketRange,
    block: Arc<SharedBytes>,
    /// The bytes beyond the linear part.
    pub frags: &'a mut Vec<u8>,
    region: Address,
    /// Offsets of its headers, for an `sk_buff`.
    pub headers: Option<Headers>,
    /// Start and end of the whole message, if the program sees only a part.
    message: Option<(usize, usize)>,
    /// Kernel data outside the context.
    pub kern: &'a mut Kern,
}

/// The packet of the context in argument 1.
pub(super) fn of<'a>(call: &'a mut Call<'_>) -> Result<Packet<'a>, HelperProblem> {
    let context = call.arg(1);
    at(call, 1, context)
}

/// The packet of a context; `n` is the argument for errors.
pub(in crate::vm) fn at<'a>(
    call: &'a mut Call<'_>,
    n: usize,
    context: u64,
) -> Result<Packet<'a>, HelperProblem> {
    let wrong = call.wrong(n, "the context of a packet");
    let found = call.machine.current_mut().and_then(|(current, space)| {
        let (range, block) = parts(current, space, context)?;
        let packet = current.placed.packet.as_mut()?;
        Some(Packet {
            range,
            block,
            region: packet.region,
            headers: packet.headers,
            message: packet.message,
            frags: &mut packet.frags,
            kern: &mut current.placed.kern,
        })
    });
    found.ok_or(wrong)
}

fn parts(
    current: &Current,
    space: &Space,
    context: u64,
) -> Option<(PacketRange, Arc<SharedBytes>)> {
    if current.placed.r1() != context {
        return None;
    }
    let region = current.placed.packet.as_ref()?.region;
    Some((current.placed.packet_range(space)?, block(space, region)?))
}

fn block(space: &Space, region: Address) -> Option<Arc<SharedBytes>> {
    match &space.region(region)?.body {
        Body::Bytes { bytes, .. } => Some(bytes.clone()),
        Body::Elements(_) | Body::Pages(_) | Body::Object(_) | Body::Opaque => None,
    }
}

/// Moves the ends of the packet; false if the block has no room.
pub(super) fn set_range(call: &mut Call<'_>, range: PacketRange) -> bool {
    let current = call.machine.current_mut();
    current.is_some_and(|(current, space)| current.placed.move_packet(space, range))
}

/// Type of the running program.
pub(super) fn prog_type(call: &Call<'_>) -> Option<ProgType> {
    call.machine.current().map(|current| current.prog_type)
}

/// Whether the running program may write its packet.
pub(in crate::vm) fn may_write(call: &Call<'_>) -> bool {
    let access = prog_type(call).map(|prog_type| prog_type.info().packet);
    access == Some(PacketAccess::Write)
}

/// A `u32` field of the context: the context's block and the offset. `None` if the context
/// has no such field.
pub(super) fn field(call: &Call<'_>, name: &str) -> Option<(Arc<SharedBytes>, usize)> {
    let current = call.machine.current()?;
    let kind = current.prog_type.info().context;
    let (offset, _) = context::layout(kind, context::Arch::HOST)?.find(name)?;
    let block = block(&call.machine.space, current.placed.context)?;
    Some((block, usize::try_from(offset).ok()?))
}

impl Packet<'_> {
    /// Length of the linear part.
    pub fn linear_len(&self) -> usize {
        self.range.end.saturating_sub(self.range.data)
    }

    /// Total length, including fragments.
    pub fn len(&self) -> usize {
        self.linear_len() + self.frags.len()
    }

    /// The block's size, an upper bound for the end.
    pub fn block_len(&self) -> usize {
        self.block.len()
    }

    /// Start and end of the whole message in its block, including the part hidden from the
    /// program.
    pub fn message(&self) -> (usize, usize) {
        self.message.unwrap_or((self.range.data, self.range.end))
    }

    /// Copies out bytes of the packet; `None` if they are outside.
    pub fn read(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len)? > self.len() {
            return None;
        }
        let linear = len.min(self.linear_len().saturating_sub(at));
        let mut bytes = match linear {
            0 => Vec::new(),
            linear => self.block.copy(self.range.data + at, linear)?,
        };
        let at = (at + linear).saturating_sub(self.linear_len());
        bytes.extend_from_slice(self.frags.get(at..at + (len - linear))?);
        Some(bytes)
    }

    /// Overwrites bytes of the packet; `None` without a change if they are outside.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        if at.checked_add(bytes.len())? > self.len() {
            return None;
        }
        let linear = bytes.len().min(self.linear_len().saturating_sub(at));
        let (head, tail) = bytes.split_at(linear);
        if !head.is_empty() {
            self.block.write(self.range.data + at, head)?;
        }
        let at = (at + linear).saturating_sub(self.linear_len());
        let frags = self.frags.get_mut(at..at + tail.len())?;
        frags.copy_from_slice(tail);
        Some(())
    }

    /// The address of bytes of the linear part; `None` if they are outside.
    pub fn address(&self, at: usize, len: usize) -> Option<u64> {
        let fits = at.checked_add(len)? <= self.linear_len();
        fits.then(|| self.region.plus((self.range.data + at) as u64))
    }

    /// Offset in the block of bytes of the metadata.
    fn in_meta(&self, at: usize, len: usize) -> Option<usize> {
        let start = self.range.meta.checked_add(at)?;
        (start.checked_add(len)? <= self.range.data).then_some(start)
    }

    /// Length of the metadata.
    pub fn meta_len(&self) -> usize {
        self.range.data.saturating_sub(self.range.meta)
    }

    /// The address of bytes of the metadata.
    pub fn meta_address(&self, at: usize, len: usize) -> Option<u64> {
        let start = self.in_meta(at, len)?;
        Some(self.region.plus(start as u64))
    }

    /// Copies out bytes of the metadata.
    pub fn read_meta(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        self.read_block(self.in_meta(at, len)?, len)
    }

    /// Overwrites bytes of the metadata.
    pub fn write_meta(&self, at: usize, bytes: &[u8]) -> Option<()> {
        self.write_block(self.in_meta(at, bytes.len())?, bytes)
    }

    /// Copies out bytes at any offset in the block.
    pub fn read_block(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        self.block.copy(at, len)
    }

    /// Overwrites bytes at any offset in the block.
    pub fn write_block(&self, at: usize, bytes: &[u8]) -> Option<()> {
        self.block.write(at, bytes)
    }

    /// Copies out `len` bytes at an offset in the block; `None` if they extend beyond the
    /// linear part.
    pub fn read_linear(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len)? > self.range.end {
            return None;
        }
        self.read_block(at, len)
    }
}
