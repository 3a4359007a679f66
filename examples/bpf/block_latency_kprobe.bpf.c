// The heatmap of block_latency without tracepoints: kprobes where a driver starts a request
// and where the block layer completes it. This is tracex3 of the kernel's samples.
//
// A request is identified by the address of its struct. Requests that a driver completes in
// batches (NVMe, polled) don't pass blk_update_request and are not counted.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "count.h"
#include "registers.h"
#include "request.h"
#include "slots.h"

#define NSEC_PER_SEC 1000000000ull

// Requests in flight, with their start times.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u64);
	__type(value, __u64);
} started SEC(".maps");

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

SEC("kprobe/blk_mq_start_request")
int BPF_KPROBE(start, struct request *request)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)request;

	if (bpf_map_update_elem(&started, &key, &now, BPF_ANY))
		__sync_fetch_and_add(&unseen, 1);
	return 0;
}

SEC("kprobe/blk_update_request")
int BPF_KPROBE(complete, struct request *request, int status, unsigned int bytes)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)request;
	__u64 *since = bpf_map_lookup_elem(&started, &key);
	struct cell cell = { .second = now / NSEC_PER_SEC };

	// Started before this program was attached, or only partly complete.
	if (!since || bytes < BPF_CORE_READ(request, __data_len))
		return 0;
	cell.slot = slot_of((now - *since) / 1000);
	bpf_map_delete_elem(&started, &key);
	if (count(&heatmap, &cell))
		__sync_fetch_and_add(&unseen, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
