// Static and global functions in .text, called by two programs and by one another.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static __noinline __u64 square(__u64 x)
{
	return x * x;
}

__noinline int clamp(int x, int limit)
{
	return x > limit ? limit : x;
}

static __noinline __u64 deep(__u64 x)
{
	return square(x) + clamp(x, 10);
}

SEC("raw_tp/sys_enter")
int calls_both(void *ctx)
{
	return deep(bpf_get_smp_processor_id());
}

SEC("tp/sched/sched_switch")
int calls_one(void *ctx)
{
	return square(bpf_get_smp_processor_id());
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
