// A prog array with initial values, and a chain of tail calls that the limit ends.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int last(void *ctx);
int again(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 3);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} jumps SEC(".maps") = {
	.values = { [0] = (void *)&last, [2] = (void *)&again },
};

__u32 rounds;

SEC("raw_tp/sys_enter")
int last(void *ctx)
{
	return 42;
}

SEC("raw_tp/sys_enter")
int again(void *ctx)
{
	/* Several CPUs run it at the same time. */
	__sync_fetch_and_add(&rounds, 1);
	bpf_tail_call(ctx, &jumps, 2);
	return rounds;
}

SEC("raw_tp/sys_enter")
int to_last(void *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return 1;
}

SEC("raw_tp/sys_enter")
int to_nobody(void *ctx)
{
	bpf_tail_call(ctx, &jumps, 1);
	return 7;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
