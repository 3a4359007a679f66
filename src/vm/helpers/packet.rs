//! The packet of the program that runs, as helpers read, write and move it: its
//! headroom and fragments included, and whether the program may write it or not.

use std::sync::Arc;

use super::call::Call;
use crate::spec::{PacketAccess, ProgType, context};
use crate::vm::events::{Headers, Kern, PacketRange};
use crate::vm::fault::HelperProblem;
use crate::vm::machine::Current;
use crate::vm::memory::{Address, Body, SharedBytes, Space};

/// The current packet.
pub(in crate::vm) struct Packet<'a> {
    /// Where it lies in its block.
    pub range: PacketRange,
    block: Arc<SharedBytes>,
    /// What lies beyond its linear part.
    pub frags: &'a mut Vec<u8>,
    region: Address,
    /// Where its headers begin, for an `sk_buff`.
    pub headers: Option<Headers>,
    /// Where a message lies of which the program sees a part.
    message: Option<(usize, usize)>,
    /// What the kernel knows beside the context.
    pub kern: &'a mut Kern,
}

/// The packet that belongs to the context in argument 1.
pub(super) fn of<'a>(call: &'a mut Call<'_>) -> Result<Packet<'a>, HelperProblem> {
    let context = call.arg(1);
    at(call, 1, context)
}

/// The packet that belongs to a context, to which argument `n` leads.
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
        Body::Elements(_) | Body::Pages(_) | Body::Opaque => None,
    }
}

/// Moves the ends of the packet; false where the block has no room for it.
pub(super) fn set_range(call: &mut Call<'_>, range: PacketRange) -> bool {
    let current = call.machine.current_mut();
    current.is_some_and(|(current, space)| current.placed.move_packet(space, range))
}

/// Type of the program that runs.
pub(super) fn prog_type(call: &Call<'_>) -> Option<ProgType> {
    call.machine.current().map(|current| current.prog_type)
}

/// Whether the program that runs may write its packet.
pub(in crate::vm) fn may_write(call: &Call<'_>) -> bool {
    let access = prog_type(call).map(|prog_type| prog_type.info().packet);
    access == Some(PacketAccess::Write)
}

/// A `u32` field of the context: its block and where it is there. `None` where this
/// context has no such field.
pub(super) fn field(call: &Call<'_>, name: &str) -> Option<(Arc<SharedBytes>, usize)> {
    let current = call.machine.current()?;
    let kind = current.prog_type.info().context;
    let (offset, _) = context::layout(kind, context::Arch::HOST)?.find(name)?;
    let block = block(&call.machine.space, current.placed.context)?;
    Some((block, usize::try_from(offset).ok()?))
}

impl Packet<'_> {
    /// Bytes from the linear part's first one to its last.
    pub fn linear_len(&self) -> usize {
        self.range.end.saturating_sub(self.range.data)
    }

    /// Bytes in all, fragments included.
    pub fn len(&self) -> usize {
        self.linear_len() + self.frags.len()
    }

    /// The block's size: the farthest that the end can move to.
    pub fn block_len(&self) -> usize {
        self.block.len()
    }

    /// From where to where the whole of it lies in its block, also what the program does
    /// not see.
    pub fn message(&self) -> (usize, usize) {
        self.message.unwrap_or((self.range.data, self.range.end))
    }

    /// Copies out bytes of the packet; `None` where it has none there.
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

    /// Overwrites bytes of the packet; `None`, and nothing changed, where it has
    /// none there.
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

    /// The address of bytes of the linear part; `None` where it has none there.
    pub fn address(&self, at: usize, len: usize) -> Option<u64> {
        let fits = at.checked_add(len)? <= self.linear_len();
        fits.then(|| self.region.plus((self.range.data + at) as u64))
    }

    /// Where bytes of the metadata in front of the packet are in the block.
    fn in_meta(&self, at: usize, len: usize) -> Option<usize> {
        let start = self.range.meta.checked_add(at)?;
        (start.checked_add(len)? <= self.range.data).then_some(start)
    }

    /// Bytes of the metadata.
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

    /// Copies out bytes of the block wherever they lie in it.
    pub fn read_block(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        self.block.copy(at, len)
    }

    /// Overwrites bytes of the block wherever they lie in it.
    pub fn write_block(&self, at: usize, bytes: &[u8]) -> Option<()> {
        self.block.write(at, bytes)
    }

    /// Bytes from a place in the block to `len` further, where the packet's linear
    /// part reaches that far.
    pub fn read_linear(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len)? > self.range.end {
            return None;
        }
        self.read_block(at, len)
    }
}
