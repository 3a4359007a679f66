//! The packet of the program that runs, as helpers read, write and move it: its
//! headroom and fragments included, and whether the program may write it or not.

use std::sync::Arc;

use super::call::Call;
use crate::spec::{ProgType, context};
use crate::vm::events::{Headers, Kern, PacketRange};
use crate::vm::fault::HelperProblem;
use crate::vm::machine::Current;
use crate::vm::memory::{Address, Body, SharedBytes, Space};

/// The current packet.
pub(super) struct Packet<'a> {
    /// Where it lies in its block.
    pub range: PacketRange,
    block: Arc<SharedBytes>,
    /// What lies beyond its linear part.
    pub frags: &'a mut Vec<u8>,
    /// Where its headers begin, for an `sk_buff`.
    pub headers: Option<Headers>,
    /// Where a message lies of which the program sees a part.
    message: Option<(usize, usize)>,
    /// What the kernel knows beside the context.
    pub kern: &'a mut Kern,
}

/// The packet that belongs to the context in argument 1.
pub(super) fn of<'a>(call: &'a mut Call<'_>) -> Result<Packet<'a>, HelperProblem> {
    let wrong = call.wrong(1, "the context of a packet");
    let context = call.arg(1);
    let found = call.machine.current_mut().and_then(|(current, space)| {
        let (range, block) = parts(current, space, context)?;
        let packet = current.placed.packet.as_mut()?;
        Some(Packet {
            range,
            block,
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
        Body::Elements(_) | Body::Opaque => None,
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
