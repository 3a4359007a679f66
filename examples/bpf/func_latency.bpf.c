// How long does a user-space function take? A uprobe at its entry and a uretprobe at its
// return; each recursive call counts separately.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "slots.h"

#define MAX_DEPTH 16

// A thread's active calls, the outermost first.
struct calls {
	__u32 depth;
	__u64 since[MAX_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, struct calls);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

SEC("uprobe//usr/bin/server:handle_request")
int BPF_KPROBE(enter)
{
	static const struct calls none;
	__u32 thread = bpf_get_current_pid_tgid(), depth;
	struct calls *calls = bpf_map_lookup_elem(&threads, &thread);

	if (!calls) {
		bpf_map_update_elem(&threads, &thread, &none, BPF_NOEXIST);
		calls = bpf_map_lookup_elem(&threads, &thread);
		if (!calls)
			return 0;
	}
	depth = calls->depth;
	calls->depth = depth + 1;
	// Deeper calls are counted, so that returns match, but not timed.
	if (depth < MAX_DEPTH)
		calls->since[depth] = bpf_ktime_get_ns();
	return 0;
}

SEC("uretprobe//usr/bin/server:handle_request")
int BPF_KRETPROBE(leave)
{
	__u32 thread = bpf_get_current_pid_tgid(), depth, slot;
	struct calls *calls = bpf_map_lookup_elem(&threads, &thread);
	__u64 *count;

	if (!calls || !calls->depth)
		return 0;
	depth = calls->depth - 1;
	calls->depth = depth;
	// Otherwise clang tests the value before the decrement, from which Linux 6.12 and older do
	// not learn the bound of the index.
	barrier_var(depth);
	if (depth < MAX_DEPTH) {
		slot = slot_of((bpf_ktime_get_ns() - calls->since[depth]) / 1000);
		count = bpf_map_lookup_elem(&hist, &slot);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
	if (!depth)
		bpf_map_delete_elem(&threads, &thread);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
