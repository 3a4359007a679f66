//! Helpers on dynptrs (`kernel/bpf/helpers.c`, `kernel/bpf/ringbuf.c`).

use super::super::dynptr::access::{Use, init, load, store};
use super::super::dynptr::{Dynptr, DynptrKind};
use super::super::memory::AccessKind;
use super::call::{Call, Returned};
use super::output;
use crate::util::Errno;

/// `E2BIG` where no dynptr leads to so many bytes.
const fn check_size(size: u32) -> Result<(), Errno> {
    if size > Dynptr::MAX_SIZE {
        return Err(Errno::E2BIG);
    }
    Ok(())
}

/// `(memory, size, flags, dynptr)`.
pub(super) fn from_mem(call: &mut Call<'_>) -> Returned {
    let (data, size, flags) = (call.arg(1), call.arg_u32(2), call.arg(3));
    let made = match (check_size(size), flags) {
        (Err(errno), _) => Err(errno),
        (Ok(()), 0) => Ok(Dynptr::new(DynptrKind::Local, data, size)),
        _ => Err(Errno::EINVAL),
    };
    if made.is_ok() {
        call.check(1, size as usize, AccessKind::Write)?;
    }
    init(call, 4, made)
}

/// `(ring buffer, size, flags, dynptr)`.
pub(super) fn reserve(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.arg_u32(2), call.arg(3));
    let made = match check_size(size) {
        _ if flags != 0 => Err(Errno::EINVAL),
        Err(errno) => Err(errno),
        // What has no room is told as null.
        Ok(()) => match output::reserve(call, 1, size.into())? {
            0 => Err(Errno::EINVAL),
            record => Ok(Dynptr::new(DynptrKind::Ringbuf, record, size)),
        },
    };
    init(call, 4, made)
}

/// `(dynptr, flags)`.
pub(super) fn submit(call: &mut Call<'_>) -> Returned {
    give_back(call, false)
}

/// `(dynptr, flags)`.
pub(super) fn discard(call: &mut Call<'_>) -> Returned {
    give_back(call, true)
}

/// Ends a reservation; one that failed left a null dynptr, which is no error here.
fn give_back(call: &mut Call<'_>, discard: bool) -> Returned {
    let pointer = load(call, 1)?;
    if pointer.is_null() {
        return Ok(0);
    }
    if pointer.kind() != Some(DynptrKind::Ringbuf) {
        return Err(call.wrong(1, "a dynptr from bpf_ringbuf_reserve_dynptr"));
    }
    output::give_back(call, 1, pointer.data, discard)?;
    store(call, 1, Dynptr::NULL)?;
    Ok(0)
}

/// `(destination, size, dynptr, offset, flags)`.
pub(super) fn read(call: &mut Call<'_>) -> Returned {
    let (len, offset, flags) = (call.arg_u32(2), call.arg_u32(4), call.arg(5));
    call.check(1, len as usize, AccessKind::Write)?;
    let from = Use::of(call, 3)?;
    if flags != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    match from.read(call, offset, len)? {
        Ok(bytes) => call.write(1, &bytes).map(|()| 0),
        Err(errno) => {
            // Where the packet turns out to have no such bytes, the program gets zeros.
            if from.clears(errno) {
                call.write(1, &vec![0; len as usize])?;
            }
            Ok(errno.to_ret())
        }
    }
}

/// `(dynptr, offset, source, size, flags)`.
pub(super) fn write(call: &mut Call<'_>) -> Returned {
    let (offset, size, flags) = (call.arg_u32(2), call.size(4), call.arg(5));
    let to = Use::of(call, 1)?;
    let bytes = call.read(3, size)?;
    let written = to.write(call, offset, &bytes, flags)?;
    Ok(written.err().map_or(0, Errno::to_ret))
}

/// `(dynptr, offset, size)`: the address of the bytes, unless they are a packet's, which
/// need not lie one behind the other.
pub(super) fn data(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.arg_u32(3));
    let of = Use::of(call, 1)?;
    match of.pointer.kind() {
        Some(DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::SkbMeta) => Ok(0),
        _ => Ok(of.slice_to_write(call, offset, len)?.unwrap_or_default()),
    }
}
