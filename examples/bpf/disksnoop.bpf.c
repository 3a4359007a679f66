// What do disks do? A record in a ring buffer for each completed request, with its size
// and latency; and for each device the number of requests, their total bytes, and a
// histogram of their sizes.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "slots.h"
#include "tracepoint.h"

struct trace_event_raw_block_rq {
	struct trace_entry ent;
	__u32 dev;
	__u64 sector;
	unsigned int nr_sector;
	unsigned int bytes;
	// What kind of request: "R", "WS" (write, synchronous), "FF" (flush), …
	char rwbs[8];
} __attribute__((preserve_access_index));

struct trace_event_raw_block_rq_completion {
	struct trace_entry ent;
	__u32 dev;
	__u64 sector;
	unsigned int nr_sector;
	int error;
} __attribute__((preserve_access_index));

struct request {
	__u64 sector;
	__u64 dev;
};

// A request's data at its issue. The size at completion can't be used: a request may
// complete in parts, or with none of its bytes.
struct issued {
	__u64 ns;
	__u32 bytes;
	char rwbs[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct request);
	__type(value, struct issued);
} started SEC(".maps");

struct device {
	__u64 requests;
	__u64 errors;
	__u64 bytes;
	__u64 ns;
	// By the power of two of their size in bytes.
	__u32 slots[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct device);
} devices SEC(".maps");

struct event {
	__u32 major, minor;
	__u64 sector;
	__u32 bytes;
	int error;
	__u64 latency_us;
	char rwbs[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

const struct event *keep_type_event __attribute__((unused));
__u64 lost;

SEC("tp/block/block_rq_issue")
int issue(struct trace_event_raw_block_rq *ctx)
{
	struct request request = { .dev = ctx->dev, .sector = ctx->sector };
	struct issued issued = { .ns = bpf_ktime_get_ns(), .bytes = ctx->bytes };

	bpf_probe_read_kernel_str(issued.rwbs, sizeof(issued.rwbs), ctx->rwbs);
	bpf_map_update_elem(&started, &request, &issued, BPF_ANY);
	return 0;
}

// The totals of a device, initially zero.
static __always_inline struct device *device_of(__u32 dev)
{
	static const struct device zero;
	struct device *device = bpf_map_lookup_elem(&devices, &dev);

	if (device)
		return device;
	bpf_map_update_elem(&devices, &dev, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&devices, &dev);
}

SEC("tp/block/block_rq_complete")
int complete(struct trace_event_raw_block_rq_completion *ctx)
{
	struct request request = { .dev = ctx->dev, .sector = ctx->sector };
	struct issued *issued = bpf_map_lookup_elem(&started, &request);
	struct device *device;
	struct event *event;
	__u64 ns;

	if (!issued)
		return 0;
	ns = bpf_ktime_get_ns() - issued->ns;

	device = device_of(ctx->dev);
	if (device) {
		// At most 31, since `bytes` has 32 bits; the mask shows it to the verifier.
		__u32 slot = slot_of(issued->bytes) & 31;

		__sync_fetch_and_add(&device->requests, 1);
		__sync_fetch_and_add(&device->bytes, issued->bytes);
		__sync_fetch_and_add(&device->ns, ns);
		__sync_fetch_and_add(&device->slots[slot], 1);
		if (ctx->error)
			__sync_fetch_and_add(&device->errors, 1);
	}

	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		// The kernel's dev_t: 12 bits of major number, 20 bits of minor.
		event->major = ctx->dev >> 20;
		event->minor = ctx->dev & 0xfffff;
		event->sector = ctx->sector;
		event->bytes = issued->bytes;
		event->error = ctx->error;
		event->latency_us = ns / 1000;
		__builtin_memcpy(event->rwbs, issued->rwbs, sizeof(event->rwbs));
		bpf_ringbuf_submit(event, 0);
	} else {
		__sync_fetch_and_add(&lost, 1);
	}
	bpf_map_delete_elem(&started, &request);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
