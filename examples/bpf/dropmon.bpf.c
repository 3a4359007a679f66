// Where does the kernel drop packets, and why? Each dropped packet fires skb:kfree_skb;
// `drops` counts them by the location in the kernel's code and, on kernels that have it
// (since 5.17), the reason.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "count.h"
#include "tracepoint.h"

enum skb_drop_reason {
	SKB_NOT_DROPPED_YET,
};

struct trace_event_raw_kfree_skb {
	struct trace_entry ent;
	void *skbaddr;
	void *location;
	void *rx_sk;
	unsigned short protocol;
	enum skb_drop_reason reason;
} __attribute__((preserve_access_index));

struct place {
	__u64 location;
	__u64 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct place);
	__type(value, __u64);
} drops SEC(".maps");

// Drops at locations that did not fit the map.
__u64 uncounted;

SEC("tp/skb/kfree_skb")
int count_drop(struct trace_event_raw_kfree_skb *ctx)
{
	struct place place = { .location = (__u64)ctx->location };

	if (bpf_core_field_exists(ctx->reason))
		place.reason = ctx->reason;
	if (count(&drops, &place))
		__sync_fetch_and_add(&uncounted, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
