//! `bpf_clone_redirect` (`net/core/filter.c`): redirects a copy of the packet immediately.
//! Nothing is sent; the copy is in the [outputs](crate::vm::Output::Clone).

use super::skb::Skb;
use crate::util::Errno;
use crate::vm::machine::{Call, Output, Returned};

/// `bpf_clone_redirect(context, device, flags)`.
pub fn clone_redirect(call: &mut Call<'_>) -> Returned {
    const INGRESS: u64 = 1;
    let (ifindex, flags) = (call.arg_u32(2), call.arg(3));
    let skb = Skb::of(call)?;
    if flags & !INGRESS != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    // As for a GSO packet of a test run, which has no gso_type.
    if skb.is_gso() {
        return Ok(Errno::EBADMSG.to_ret());
    }
    let packet = skb.read(0, skb.len()).unwrap_or_default();
    if call.machine.world.net().find_device(ifindex).is_none() {
        return Ok(Errno::EINVAL.to_ret());
    }
    call.machine.output(Output::Clone {
        ifindex,
        ingress: flags & INGRESS != 0,
        packet,
    });
    Ok(0)
}
