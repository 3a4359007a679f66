//! Queueing disciplines (`net/sched/bpf_qdisc.c`): the `struct sk_buff`s and `struct Qdisc`s of a
//! test in kernel memory.

use super::kernel::{argument, field, object};
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

const PACKET: &str = "a struct sk_buff";
const QDISC: &str = "a struct Qdisc";

/// `bpf_skb_get_hash(skb)`: the packet's `hash`, which a test sets.
pub(super) fn hash(call: &mut Call<'_>) -> Result {
    let at = argument(call, 1, "sk_buff", PACKET)?;
    Ok(field(call, at, "hash") & u64::from(u32::MAX))
}

/// `bpf_kfree_skb(skb)`: frees the packet, of which the program had the reference.
pub(super) fn free(call: &mut Call<'_>) -> Result {
    let at = argument(call, 1, "sk_buff", PACKET)?;
    call.machine.release(1, at)?;
    if let Some(packet) = object(call, at) {
        packet.free();
    }
    Ok(0)
}

/// `bpf_qdisc_skb_drop(skb, to_free)`: puts the packet before those in the list that the caller of
/// `enqueue` frees (`__qdisc_drop`).
pub(super) fn drop(call: &mut Call<'_>) -> Result {
    let at = argument(call, 1, "sk_buff", PACKET)?;
    let list = call.arg(2);
    call.machine.release(1, at)?;
    let rest = field(call, list, "skb");
    // An object file may define a partial struct, without the link.
    let _ = object(call, at).map(|packet| packet.set("next", rest));
    let _ = object(call, list).map(|list| list.set("skb", at));
    Ok(0)
}

/// `bpf_qdisc_watchdog_schedule(sch, expire, delta)`: the timer is the kernel's; a test calls
/// `dequeue` when it wants to.
pub(super) fn schedule(call: &mut Call<'_>) -> Result {
    argument(call, 1, "Qdisc", QDISC)?;
    Ok(0)
}

/// `bpf_qdisc_bstats_update(sch, skb)`: one packet more, and its bytes (`bstats_update`,
/// `include/net/sch_generic.h`).
pub(super) fn count(call: &mut Call<'_>) -> Result {
    let qdisc = argument(call, 1, "Qdisc", QDISC)?;
    let packet = argument(call, 2, "sk_buff", PACKET)?;
    let bytes = field(call, packet, "len");
    for (path, more) in [("bstats.bytes", bytes), ("bstats.packets", 1)] {
        // `u64_stats_t` on 64 bits: a `local64_t` of a `local_t` of an `atomic_long_t`.
        let path = format!("{path}.v.a.a.counter");
        let sum = field(call, qdisc, &path).wrapping_add(more);
        let _ = object(call, qdisc).map(|qdisc| qdisc.set(&path, sum));
    }
    Ok(0)
}
