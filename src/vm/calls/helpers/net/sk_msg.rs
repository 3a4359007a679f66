//! Helpers on a message being sent to a socket (`net/core/filter.c`). The message is
//! contiguous here; in the kernel it may be fragmented, and a program sees the first fragment
//! until it pulls more.

use super::super::packet;
use crate::util::Errno;
use crate::vm::events::{Kern, PacketRange};
use crate::vm::machine::{Call, HelperProblem, Returned};

fn kern<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Kern, HelperProblem> {
    Ok(packet::of(call)?.kern)
}

/// `bpf_msg_apply_bytes(context, bytes)`: the number of bytes that the verdict applies to.
pub fn apply_bytes(call: &mut Call<'_>) -> Returned {
    let bytes = call.arg_u32(2);
    kern(call)?.apply_bytes = bytes;
    Ok(0)
}

/// `bpf_msg_cork_bytes(context, bytes)`: the number of bytes to wait for before the program
/// runs again.
pub fn cork_bytes(call: &mut Call<'_>) -> Returned {
    let bytes = call.arg_u32(2);
    kern(call)?.cork_bytes = bytes;
    Ok(0)
}

/// The whole message and its offset in the block, including bytes hidden from the program.
fn whole(call: &mut Call<'_>) -> Result<(Vec<u8>, usize), HelperProblem> {
    let packet = packet::of(call)?;
    let (start, end) = packet.message();
    let bytes = packet.read_block(start, end.saturating_sub(start));
    Ok((bytes.unwrap_or_default(), start))
}

/// Sets the part of the message that the program sees, and the message's length.
fn show(call: &mut Call<'_>, message: (usize, usize), seen: (usize, usize)) -> bool {
    let range = PacketRange {
        meta: seen.0,
        data: seen.0,
        end: seen.1,
    };
    let moved = packet::set_range(call, range);
    if let Some((current, _)) = call.machine.current_mut()
        && let Some(packet) = &mut current.placed.packet
    {
        packet.message = Some(message);
    }
    if let Some((block, at)) = packet::field(call, "size") {
        // The field is in the context's layout.
        let _ = block.store(at, 4, (message.1 - message.0) as u64);
    }
    moved
}

/// `bpf_msg_pull_data(context, start, end, flags)`: makes these bytes visible to the program.
pub fn pull_data(call: &mut Call<'_>) -> Returned {
    let (from, to, flags) = (call.size(2), call.size(3), call.arg(4));
    let (bytes, start) = whole(call)?;
    if flags != 0 || to <= from || to > bytes.len() {
        return Ok(Errno::EINVAL.to_ret());
    }
    let message = (start, start + bytes.len());
    show(call, message, (start + from, start + to));
    Ok(0)
}

/// `bpf_msg_push_data(context, start, length, flags)`: inserts bytes; zeros here, undefined
/// in the kernel.
pub fn push_data(call: &mut Call<'_>) -> Returned {
    let (at, len, flags) = (call.size(2), call.size(3), call.arg(4));
    let (bytes, start) = whole(call)?;
    if flags != 0 || len > 0 && at > bytes.len() {
        return Ok(Errno::EINVAL.to_ret());
    }
    if len == 0 {
        return Ok(0);
    }
    let (before, behind) = bytes.split_at_checked(at).unwrap_or((&bytes, &[]));
    let longer = [before, &vec![0; len.min(u16::MAX.into())], behind].concat();
    rewrite(call, start, &longer, bytes.len() + len)
}

/// `bpf_msg_pop_data(context, start, length, flags)`: removes bytes from the message.
pub fn pop_data(call: &mut Call<'_>) -> Returned {
    let (at, len, flags) = (call.size(2), call.size(3), call.arg(4));
    let (bytes, start) = whole(call)?;
    if flags != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if len == 0 {
        return Ok(0);
    }
    if at >= bytes.len() || at + len > bytes.len() {
        return Ok(Errno::EINVAL.to_ret());
    }
    let kept = [bytes.get(..at), bytes.get(at + len..)];
    let shorter = kept.map(Option::unwrap_or_default).concat();
    rewrite(call, start, &shorter, bytes.len() - len)
}

/// Replaces the message and makes all of it visible.
fn rewrite(call: &mut Call<'_>, start: usize, bytes: &[u8], len: usize) -> Returned {
    let packet = packet::of(call)?;
    let fits = len == bytes.len() && packet.write_block(start, bytes).is_some();
    if !fits {
        return Ok(Errno::ENOMEM.to_ret());
    }
    let message = (start, start + len);
    show(call, message, message);
    Ok(0)
}
