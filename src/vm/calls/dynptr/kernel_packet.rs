//! The packet of a `struct sk_buff` in kernel memory, to which tracing programs have a pointer.
//! It is read-only.

use super::super::helpers::probe::From;
use crate::util::Errno;
use crate::vm::machine::{Bytes, Call};

/// A mocked `struct sk_buff`, with the values of its fields.
pub(in crate::vm) struct KernelPacket {
    /// The address of the first byte (`data`).
    data: u64,
    /// Bytes in all (`len`).
    pub len: u32,
    /// Bytes at `data`, without those in fragments (`data_len`).
    linear: u32,
}

impl KernelPacket {
    /// The packet of the `sk_buff` at an address; `None` if that is the running program's
    /// context.
    pub(in crate::vm) fn at(call: &Call<'_>, address: u64) -> Option<Self> {
        let current = call.machine.current();
        if current.is_some_and(|current| current.placed.r1() == address) {
            return None;
        }
        let object = call.machine.world.kernel_memory().object_at(address)?;
        let number = |field| object.get(field).ok();
        let len = u32::try_from(number("len")?).ok()?;
        let in_fragments = u32::try_from(number("data_len").unwrap_or_default()).ok()?;
        Some(Self {
            data: number("data")?,
            len,
            linear: len.saturating_sub(in_fragments),
        })
    }

    /// The address of bytes in the linear part.
    pub(in crate::vm) fn address(&self, at: u32, len: u32) -> Option<u64> {
        (at.checked_add(len)? <= self.linear).then(|| self.data.wrapping_add(at.into()))
    }

    /// Copies bytes out. Bytes in fragments are not mocked, and can't be read.
    pub(in crate::vm) fn read(
        &self,
        call: &mut Call<'_>,
        at: u32,
        len: u32,
    ) -> Result<Bytes, Errno> {
        let address = self.address(at, len).ok_or(Errno::EFAULT)?;
        let bytes = From::Kernel.copy(call.machine, address, len as usize);
        bytes.map(Bytes::from_vec).map_err(|_| Errno::EFAULT)
    }
}
