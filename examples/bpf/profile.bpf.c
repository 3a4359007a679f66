// Where is the time spent? A timer samples what runs on each CPU.
// Samples are counted by process, kernel stack and user stack:
// the data for a flame graph.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "count.h"

#define MAX_DEPTH 127

struct sample {
	__u32 pid;
	// Keys of `stacks`; negative: no stack, or it can't be read (-EFAULT).
	int kernel_stack;
	int user_stack;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct sample);
	__type(value, __u64);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, MAX_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

// Samples that did not fit the map.
__u64 uncounted;

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct sample sample = { .pid = bpf_get_current_pid_tgid() >> 32 };

	// The idle task.
	if (!sample.pid)
		return 0;
	sample.kernel_stack = bpf_get_stackid(ctx, &stacks, 0);
	sample.user_stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	if (count(&samples, &sample))
		__sync_fetch_and_add(&uncounted, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
