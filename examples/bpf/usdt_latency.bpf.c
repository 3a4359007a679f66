// How long do the requests of a server take? The server has two USDT probes:
// `request__start(id, path)` and `request__done(id, status)`. Several threads may work
// on one request, so the request's id connects the two.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "slots.h"

#include <bpf/usdt.bpf.h>

struct request {
	__u64 since;
	char path[64];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u64);
	__type(value, struct request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

// A record for each request that failed.
struct event {
	__u64 id;
	__u64 us;
	int status;
	char path[64];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} failures SEC(".maps");

const struct event *keep_type_event __attribute__((unused));

SEC("usdt//usr/bin/server:server:request__start")
int BPF_USDT(start, __u64 id, const char *path)
{
	struct request request = { .since = bpf_ktime_get_ns() };

	bpf_probe_read_user_str(request.path, sizeof(request.path), path);
	bpf_map_update_elem(&requests, &id, &request, BPF_ANY);
	return 0;
}

SEC("usdt//usr/bin/server:server:request__done")
int BPF_USDT(done, __u64 id, int status)
{
	struct request *request = bpf_map_lookup_elem(&requests, &id);
	struct event *event;
	__u64 us, *count;
	__u32 slot;

	if (!request)
		return 0;
	us = (bpf_ktime_get_ns() - request->since) / 1000;
	slot = slot_of(us);
	count = bpf_map_lookup_elem(&hist, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);

	event = status < 400 ? NULL : bpf_ringbuf_reserve(&failures, sizeof(*event), 0);
	if (event) {
		event->id = id;
		event->us = us;
		event->status = status;
		__builtin_memcpy(event->path, request->path, sizeof(event->path));
		bpf_ringbuf_submit(event, 0);
	}
	bpf_map_delete_elem(&requests, &id);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
