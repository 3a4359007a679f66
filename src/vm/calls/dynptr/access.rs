//! Reading and writing the memory of a dynptr.

use super::super::helpers::{packet, skb};
use super::kern::{Dynptr, DynptrKind};
use super::kernel_packet::KernelPacket;
use crate::util::Errno;
use crate::vm::machine::{Bytes, Call, HelperProblem};

/// A result for the program, or the reason why the call is a fault.
pub(in crate::vm) type AccessResult<T> = Result<Result<T, Errno>, HelperProblem>;

/// Limit of offsets and sizes in an XDP packet.
const XDP_REACH: u32 = 0xffff;
/// Limit of offsets in an `sk_buff`.
const SKB_REACH: u32 = i32::MAX.cast_unsigned();

/// The dynptr that argument `n` points to.
pub(in crate::vm) fn load(call: &Call<'_>, n: usize) -> Result<Dynptr, HelperProblem> {
    let loaded = Dynptr::load(&call.machine.space, call.arg(n));
    loaded.map_err(|fault| HelperProblem::Access { arg: n, fault })
}

/// Stores a dynptr where argument `n` points.
pub(in crate::vm) fn store(
    call: &Call<'_>,
    n: usize,
    pointer: Dynptr,
) -> Result<(), HelperProblem> {
    let stored = pointer.store(&call.machine.space, call.arg(n));
    stored.map_err(|fault| HelperProblem::Access { arg: n, fault })
}

/// Initialises the dynptr that argument `n` points to; on error makes it null and returns the
/// error.
pub(in crate::vm) fn init(
    call: &Call<'_>,
    n: usize,
    pointer: Result<Dynptr, Errno>,
) -> Result<u64, HelperProblem> {
    store(call, n, pointer.unwrap_or(Dynptr::NULL))?;
    Ok(pointer.err().map_or(0, Errno::to_ret))
}

/// A dynptr argument of a call.
pub(in crate::vm) struct Use {
    pub(in crate::vm) arg: usize,
    pub(in crate::vm) pointer: Dynptr,
}

impl Use {
    /// The dynptr that argument `arg` points to.
    pub(in crate::vm) fn of(call: &Call<'_>, arg: usize) -> Result<Self, HelperProblem> {
        let pointer = load(call, arg)?;
        Ok(Self { arg, pointer })
    }

    fn kind(&self, call: &Call<'_>) -> Result<DynptrKind, HelperProblem> {
        let kind = self.pointer.kind();
        kind.ok_or_else(|| call.wrong(self.arg, "an initialised dynptr"))
    }

    /// The address of a byte of local memory.
    const fn address(&self, offset: u32) -> u64 {
        let data = self.pointer.data;
        data.wrapping_add(self.pointer.offset as u64)
            .wrapping_add(offset as u64)
    }

    /// Offset of a byte from the packet's start.
    const fn in_packet(&self, offset: u32) -> u32 {
        self.pointer.offset.wrapping_add(offset)
    }

    /// Copies bytes out (`__bpf_dynptr_read`).
    pub(in crate::vm) fn read(
        &self,
        call: &mut Call<'_>,
        offset: u32,
        len: u32,
    ) -> AccessResult<Bytes> {
        if self.pointer.is_null() {
            return Ok(Err(Errno::EINVAL));
        }
        if let Err(errno) = self.pointer.check(offset, len) {
            return Ok(Err(errno));
        }
        let (arg, at, size) = (self.arg, self.in_packet(offset), len as usize);
        let kind = self.kind(call)?;
        if kind == DynptrKind::Skb
            && let Some(packet) = KernelPacket::at(call, self.pointer.data)
        {
            return Ok(packet.read(call, at, len));
        }
        let packet = match kind {
            DynptrKind::Local | DynptrKind::Ringbuf => {
                let mut bytes = Bytes::new();
                bytes.resize(size, 0);
                let space = &call.machine.space;
                let read = space.read_into(self.address(offset), &mut bytes);
                return read
                    .map(|()| Ok(bytes))
                    .map_err(|fault| HelperProblem::Access { arg, fault });
            }
            _ => packet::at(call, arg, self.pointer.data)?,
        };
        let (bytes, errno) = match kind {
            DynptrKind::SkbMeta => (packet.read_meta(at as usize, size), Errno::EFAULT),
            DynptrKind::Xdp if at > XDP_REACH || len > XDP_REACH => (None, Errno::EFAULT),
            DynptrKind::Xdp => (packet.read(at as usize, size), Errno::EINVAL),
            _ if at > SKB_REACH => (None, Errno::EFAULT),
            _ => (packet.read(at as usize, size), Errno::EFAULT),
        };
        Ok(bytes.map(Bytes::from_vec).ok_or(errno))
    }

    /// Whether a [read](Self::read) that failed with this error zeroes the buffer: when a packet
    /// was shortened since the dynptr was created (`__bpf_skb_load_bytes`).
    pub(in crate::vm) fn clears(&self, errno: Errno) -> bool {
        self.pointer.kind() == Some(DynptrKind::Skb) && errno == Errno::EFAULT
    }

    /// Overwrites bytes (`__bpf_dynptr_write`). `flags` are those of `bpf_skb_store_bytes`, and
    /// only valid for the packet of an `sk_buff`.
    pub(in crate::vm) fn write(
        &self,
        call: &mut Call<'_>,
        offset: u32,
        bytes: &[u8],
        flags: u64,
    ) -> AccessResult<()> {
        if self.pointer.is_null() || self.pointer.is_read_only() {
            return Ok(Err(Errno::EINVAL));
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if let Err(errno) = self.pointer.check(offset, len) {
            return Ok(Err(errno));
        }
        let (arg, at) = (self.arg, self.in_packet(offset));
        let kind = self.kind(call)?;
        if kind != DynptrKind::Skb && flags != 0 {
            return Ok(Err(Errno::EINVAL));
        }
        let mut packet = match kind {
            DynptrKind::Local | DynptrKind::Ringbuf => {
                let written = call.machine.space.write(self.address(offset), bytes);
                return written
                    .map(Ok)
                    .map_err(|fault| HelperProblem::Access { arg, fault });
            }
            DynptrKind::Skb => {
                let stored = skb::store(call, arg, self.pointer.data, at, bytes, flags)?;
                return Ok(stored);
            }
            _ => packet::at(call, arg, self.pointer.data)?,
        };
        let (written, errno) = match kind {
            DynptrKind::SkbMeta => (packet.write_meta(at as usize, bytes), Errno::EFAULT),
            _ if at > XDP_REACH || len > XDP_REACH => (None, Errno::EFAULT),
            _ => (packet.write(at as usize, bytes), Errno::EINVAL),
        };
        Ok(written.ok_or(errno))
    }

    /// The address of contiguous bytes, for programs to load and store (`bpf_dynptr_slice`);
    /// `None` if there are none.
    pub(in crate::vm) fn slice(
        &self,
        call: &mut Call<'_>,
        offset: u32,
        len: u32,
    ) -> Result<Option<u64>, HelperProblem> {
        if self.pointer.is_null() || self.pointer.check(offset, len).is_err() {
            return Ok(None);
        }
        let (at, size) = (self.in_packet(offset), len as usize);
        let kind = self.kind(call)?;
        if matches!(kind, DynptrKind::Local | DynptrKind::Ringbuf) {
            return Ok(Some(self.address(offset)));
        }
        if kind == DynptrKind::Skb
            && let Some(packet) = KernelPacket::at(call, self.pointer.data)
        {
            return Ok(packet.address(at, len));
        }
        let packet = packet::at(call, self.arg, self.pointer.data)?;
        Ok(match kind {
            DynptrKind::SkbMeta => packet.meta_address(at as usize, size),
            DynptrKind::Xdp if at > XDP_REACH || len > XDP_REACH => None,
            _ => packet.address(at as usize, size),
        })
    }

    /// Like [`slice`](Self::slice), for writing; also `None` if the dynptr is read-only.
    pub(in crate::vm) fn slice_to_write(
        &self,
        call: &mut Call<'_>,
        offset: u32,
        len: u32,
    ) -> Result<Option<u64>, HelperProblem> {
        if self.pointer.is_read_only() {
            return Ok(None);
        }
        self.slice(call, offset, len)
    }
}
