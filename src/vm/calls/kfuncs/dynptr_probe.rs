//! Kfuncs that read user and kernel memory into a dynptr (`kernel/trace/bpf_trace.c`,
//! "dynptr"): `(dynptr, offset, size, address)`, and the task if it is not the current one.

use super::super::dynptr::access::Use;
use super::super::helpers::probe::From;
use crate::util::Errno;
use crate::vm::machine::{Call, Returned};

/// Bytes moved at once if they are not contiguous.
const CHUNK: u32 = 256;

/// Copies bytes. As in the kernel, a packet in fragments is filled in pieces, and pieces
/// copied before an error remain.
fn copy(call: &mut Call<'_>, from: From) -> Returned {
    let to = Use::of(call, 1)?;
    let (offset, len, address) = (call.arg_u32(2), call.arg_u32(3), call.arg(4));
    let piece = match to.slice_to_write(call, offset, len)? {
        Some(_) => len.max(1),
        None if to.pointer.check(offset, len).is_err() => return Ok(Errno::E2BIG.to_ret()),
        None => CHUNK,
    };
    let mut done = 0;
    while done < len {
        let size = piece.min(len - done);
        let bytes = from.copy(
            call.machine,
            address.wrapping_add(done.into()),
            size as usize,
        );
        let written = match bytes {
            Ok(bytes) => to.write(call, offset.wrapping_add(done), &bytes, 0)?,
            Err(errno) => Err(errno),
        };
        if let Err(errno) = written {
            return Ok(errno.to_ret());
        }
        done += size;
    }
    Ok(0)
}

/// Copies a string; returns its length with the NUL. Each piece starts at the NUL of the
/// previous one.
fn copy_str(call: &mut Call<'_>, from: From) -> Returned {
    let to = Use::of(call, 1)?;
    let (offset, len, address) = (call.arg_u32(2), call.arg_u32(3), call.arg(4));
    let piece = match to.slice_to_write(call, offset, len)? {
        Some(_) => len,
        None if to.pointer.check(offset, len).is_err() => return Ok(Errno::E2BIG.to_ret()),
        None => CHUNK,
    };
    let mut done = 0;
    while done < len {
        let size = piece.min(len - done);
        let at = address.wrapping_add(done.into());
        let bytes = match from.copy_str(call.machine, at, size as usize) {
            Ok(bytes) => bytes,
            Err(errno) => return Ok(errno.to_ret()),
        };
        if let Err(errno) = to.write(call, offset.wrapping_add(done), &bytes, 0)? {
            return Ok(errno.to_ret());
        }
        let copied = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // The NUL of a truncated piece is overwritten by the next one.
        let is_last = piece == len || copied < size || size == 1;
        if is_last {
            return Ok((done + copied).into());
        }
        done += size - 1;
    }
    Ok(done.into())
}

pub(super) fn probe_read_user(call: &mut Call<'_>) -> Returned {
    copy(call, From::User)
}

pub(super) fn probe_read_kernel(call: &mut Call<'_>) -> Returned {
    copy(call, From::Kernel)
}

pub(super) fn probe_read_user_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, From::User)
}

pub(super) fn probe_read_kernel_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, From::Kernel)
}

pub(super) fn copy_from_user(call: &mut Call<'_>) -> Returned {
    copy(call, From::User)
}

pub(super) fn copy_from_user_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, From::User)
}

/// `bpf_copy_from_user_task_dynptr`: the task is in argument 5.
pub(super) fn copy_from_user_task(call: &mut Call<'_>) -> Returned {
    own_task(call)?;
    copy(call, From::User)
}

/// `bpf_copy_from_user_task_str_dynptr`: the task is in argument 5.
pub(super) fn copy_from_user_task_str(call: &mut Call<'_>) -> Returned {
    own_task(call)?;
    copy_str(call, From::User)
}

/// Only the current task's memory is mocked.
fn own_task(call: &mut Call<'_>) -> Returned {
    match call.machine.world.task_address()? == call.arg(5) {
        true => Ok(0),
        false => Err(call.wrong(5, "the current task")),
    }
}
