//! Helpers on a message on its way into a socket (`net/core/filter.c`). Its bytes are one
//! piece here; the kernel may have it in several, of which a program sees the first
//! until it pulls more.

use crate::util::Errno;
use crate::vm::events::{Kern, PacketRange};
use crate::vm::fault::HelperProblem;
use crate::vm::helpers::call::{Call, Returned};
use crate::vm::helpers::packet;

fn kern<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Kern, HelperProblem> {
    Ok(packet::of(call)?.kern)
}

/// `(context, bytes)`: how far the verdict reaches.
pub fn apply_bytes(call: &mut Call<'_>) -> Returned {
    let bytes = call.arg_u32(2);
    kern(call)?.apply_bytes = bytes;
    Ok(0)
}

/// `(context, bytes)`: how many to wait for before the program runs again.
pub fn cork_bytes(call: &mut Call<'_>) -> Returned {
    let bytes = call.arg_u32(2);
    kern(call)?.cork_bytes = bytes;
    Ok(0)
}

/// The message's bytes and where they begin, whatever part of it the program sees.
fn whole(call: &mut Call<'_>) -> Result<(Vec<u8>, usize), HelperProblem> {
    let packet = packet::of(call)?;
    let (start, end) = packet.message();
    let bytes = packet.read_block(start, end.saturating_sub(start));
    Ok((bytes.unwrap_or_default(), start))
}

/// Makes the program see some of the message, and says how long all of it is.
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

/// `(context, start, end, flags)`: makes these bytes the ones that the program sees.
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

/// `(context, start, length, flags)`: puts bytes into the message, whatever they are:
/// zeros here.
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

/// `(context, start, length, flags)`: takes bytes out of the message.
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

/// Replaces the message; all of it is seen then.
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
