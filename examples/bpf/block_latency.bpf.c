// How long do disks take, and when? Counts requests by the second in which they
// completed and by the power of two of their latency (from issue to completion, in
// microseconds): a heatmap over time.
//
// A request is identified by its device and sector, which are in the records of both
// tracepoints.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "count.h"
#include "slots.h"
#include "tracepoint.h"

#define NSEC_PER_SEC 1000000000ull

struct trace_event_raw_block_rq {
	struct trace_entry ent;
	__u32 dev;
	__u64 sector;
} __attribute__((preserve_access_index));

struct trace_event_raw_block_rq_completion {
	struct trace_entry ent;
	__u32 dev;
	__u64 sector;
} __attribute__((preserve_access_index));

struct request {
	__u64 sector;
	__u64 dev;
};

// Requests in flight, with their issue times.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct request);
	__type(value, __u64);
} started SEC(".maps");

// `bpflab run` draws a heatmap of a map whose key has a time and a `slot`.
struct cell {
	__u64 second;
	__u64 slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct cell);
	__type(value, __u64);
} heatmap SEC(".maps");

// Requests that did not fit a map.
__u64 unseen;

SEC("tp/block/block_rq_issue")
int issue(struct trace_event_raw_block_rq *ctx)
{
	struct request request = { .dev = ctx->dev, .sector = ctx->sector };
	__u64 now = bpf_ktime_get_ns();

	if (bpf_map_update_elem(&started, &request, &now, BPF_ANY))
		__sync_fetch_and_add(&unseen, 1);
	return 0;
}

SEC("tp/block/block_rq_complete")
int complete(struct trace_event_raw_block_rq_completion *ctx)
{
	struct request request = { .dev = ctx->dev, .sector = ctx->sector };
	__u64 *issued = bpf_map_lookup_elem(&started, &request);
	__u64 now = bpf_ktime_get_ns();
	struct cell cell = { .second = now / NSEC_PER_SEC };

	// Issued before this program was attached.
	if (!issued)
		return 0;
	cell.slot = slot_of((now - *issued) / 1000);
	// The sector's next request starts over.
	bpf_map_delete_elem(&started, &request);
	if (count(&heatmap, &cell))
		__sync_fetch_and_add(&unseen, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
