//! Kfuncs on dynptrs (`kernel/bpf/helpers.c`, `net/core/filter.c`).

use super::super::dynptr::access::{AccessResult, Use, init, load, store};
use super::super::dynptr::kernel_packet::KernelPacket;
use super::super::dynptr::{Dynptr, DynptrKind};
use super::super::helpers::packet;
use crate::util::Errno;
use crate::vm::machine::{Bytes, Call, Returned};
use crate::vm::memory::AccessKind;

/// Bytes moved at once if they are not contiguous.
const CHUNK: u32 = 256;

/// Makes a dynptr to the packet of the context in argument 1: `(context, flags, dynptr)`.
fn of_packet(
    call: &mut Call<'_>,
    kind: DynptrKind,
    size: impl Fn(&packet::Packet<'_>) -> usize,
) -> AccessResult<Dynptr> {
    if call.arg(2) != 0 {
        return Ok(Err(Errno::EINVAL));
    }
    let context = call.arg(1);
    let size = size(&packet::at(call, 1, context)?);
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    Ok(Ok(Dynptr::new(kind, context, size)))
}

/// `bpf_dynptr_from_skb(context, flags, dynptr)`. Programs that may not write the packet get
/// a read-only dynptr: the kernel's verifier calls `bpf_dynptr_from_skb_rdonly` instead.
/// Tracing programs pass a `struct sk_buff` instead of a context.
pub(super) fn from_skb(call: &mut Call<'_>) -> Returned {
    let address = call.arg(1);
    if let Some(packet) = KernelPacket::at(call, address) {
        let made = Dynptr::new(DynptrKind::Skb, address, packet.len).read_only();
        let made = match call.arg(2) {
            0 => Ok(made),
            _ => Err(Errno::EINVAL),
        };
        return init(call, 3, made);
    }
    let made = of_packet(call, DynptrKind::Skb, |packet| packet.len())?;
    let writes = packet::may_write(call);
    let made = made.map(|pointer| match writes {
        true => pointer,
        false => pointer.read_only(),
    });
    init(call, 3, made)
}

/// `bpf_dynptr_from_skb_meta(context, flags, dynptr)`: the metadata before a packet.
pub(super) fn from_skb_meta(call: &mut Call<'_>) -> Returned {
    let made = of_packet(call, DynptrKind::SkbMeta, |packet| packet.meta_len())?;
    init(call, 3, made)
}

/// `bpf_dynptr_from_xdp(context, flags, dynptr)`.
pub(super) fn from_xdp(call: &mut Call<'_>) -> Returned {
    let made = of_packet(call, DynptrKind::Xdp, |packet| packet.len())?;
    init(call, 3, made)
}

/// `bpf_dynptr_slice(dynptr, offset, buffer or null, size)`: the address of the bytes; if
/// they are not contiguous, the address of the buffer with a copy.
pub(super) fn slice(call: &mut Call<'_>) -> Returned {
    let of = Use::of(call, 1)?;
    slice_of(call, &of)
}

/// `bpf_dynptr_slice_rdwr`: the same for writing. The program has to write back changes of
/// the buffer.
pub(super) fn slice_rdwr(call: &mut Call<'_>) -> Returned {
    let of = Use::of(call, 1)?;
    if of.pointer.is_read_only() {
        return Ok(0);
    }
    slice_of(call, &of)
}

fn slice_of(call: &mut Call<'_>, of: &Use) -> Returned {
    let (offset, buffer, len) = (call.arg_u32(2), call.arg(3), call.arg_u32(4));
    if buffer != 0 {
        call.check(3, len as usize, AccessKind::Write)?;
    }
    if let Some(found) = of.slice(call, offset, len)? {
        return Ok(found);
    }
    if buffer == 0 {
        return Ok(0);
    }
    match of.read(call, offset, len)? {
        Ok(bytes) => call.write(3, &bytes).map(|()| buffer),
        // Beyond the fragments of an XDP packet the buffer is returned unchanged.
        Err(Errno::EINVAL | Errno::EFAULT) if of.pointer.kind() == Some(DynptrKind::Xdp) => {
            Ok(buffer)
        }
        Err(_) => Ok(0),
    }
}

/// `bpf_dynptr_adjust(dynptr, start, end)`: moves its ends, relative to its start.
pub(super) fn adjust(call: &mut Call<'_>) -> Returned {
    let (start, end) = (call.arg_u32(2), call.arg_u32(3));
    let pointer = load(call, 1)?;
    if pointer.is_null() || start > end {
        return Ok(Errno::EINVAL.to_ret());
    }
    if end > pointer.size() {
        return Ok(Errno::ERANGE.to_ret());
    }
    store(call, 1, pointer.between(start, end))?;
    Ok(0)
}

/// `bpf_dynptr_is_null(dynptr)`.
pub(super) fn is_null(call: &mut Call<'_>) -> Returned {
    Ok(load(call, 1)?.is_null().into())
}

/// `bpf_dynptr_is_rdonly(dynptr)`.
pub(super) fn is_rdonly(call: &mut Call<'_>) -> Returned {
    let pointer = load(call, 1)?;
    Ok((!pointer.is_null() && pointer.is_read_only()).into())
}

/// `bpf_dynptr_size(dynptr)`: its size in bytes, or an errno.
pub(super) fn size(call: &mut Call<'_>) -> Returned {
    let pointer = load(call, 1)?;
    Ok(match pointer.is_null() {
        true => Errno::EINVAL.to_ret(),
        false => pointer.size().into(),
    })
}

/// `bpf_dynptr_clone(dynptr, clone)`: makes another dynptr to the same bytes.
pub(super) fn clone(call: &mut Call<'_>) -> Returned {
    let pointer = load(call, 1)?;
    let made = match pointer.is_null() {
        true => Err(Errno::EINVAL),
        false => Ok(pointer),
    };
    store(call, 2, made.unwrap_or(Dynptr::NULL))?;
    Ok(made.err().map_or(0, Errno::to_ret))
}

/// `bpf_dynptr_copy(destination, its offset, source, its offset, size)`. If one side is
/// contiguous, the bytes are moved at once, even if they overlap; otherwise in pieces.
pub(super) fn copy(call: &mut Call<'_>) -> Returned {
    let (to, from) = (Use::of(call, 1)?, Use::of(call, 3)?);
    let (at, start, len) = (call.arg_u32(2), call.arg_u32(4), call.arg_u32(5));
    let step = |call: &mut Call<'_>, done: u32, size| match from.read(
        call,
        start.wrapping_add(done),
        size,
    )? {
        Ok(bytes) => to.write(call, at.wrapping_add(done), &bytes, 0),
        Err(errno) => Ok(Err(errno)),
    };
    let copied =
        if to.slice_to_write(call, at, len)?.is_some() || from.slice(call, start, len)?.is_some() {
            step(call, 0, len)?
        } else {
            match to
                .pointer
                .check(at, len)
                .and(from.pointer.check(start, len))
            {
                Ok(()) => in_chunks(call, len, step)?,
                Err(errno) => Err(errno),
            }
        };
    Ok(copied.err().map_or(0, Errno::to_ret))
}

/// `bpf_dynptr_memset(dynptr, offset, size, byte)`: fills bytes; `EINVAL` if read-only.
pub(super) fn memset(call: &mut Call<'_>) -> Returned {
    let to = Use::of(call, 1)?;
    let (offset, len) = (call.arg_u32(2), call.arg_u32(3));
    let byte = call.arg(4).to_le_bytes()[0];
    let step = |call: &mut Call<'_>, done: u32, size: u32| {
        let bytes = Bytes::from_elem(byte, size as usize);
        to.write(call, offset.wrapping_add(done), &bytes, 0)
    };
    let set = if to.slice_to_write(call, offset, len)?.is_some() {
        step(call, 0, len)?
    } else if to.pointer.is_read_only() {
        Err(Errno::EINVAL)
    } else {
        match to.pointer.check(offset, len) {
            Ok(()) => in_chunks(call, len, step)?,
            Err(errno) => Err(errno),
        }
    };
    Ok(set.err().map_or(0, Errno::to_ret))
}

/// Runs `step` on pieces of `len` bytes until it fails. Its arguments are the number of bytes
/// done and the size of the piece.
fn in_chunks(
    call: &mut Call<'_>,
    len: u32,
    mut step: impl FnMut(&mut Call<'_>, u32, u32) -> AccessResult<()>,
) -> AccessResult<()> {
    let mut done = 0;
    while done < len {
        let size = CHUNK.min(len - done);
        if let Err(errno) = step(call, done, size)? {
            return Ok(Err(errno));
        }
        done += size;
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
