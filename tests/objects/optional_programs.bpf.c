// SEC("?…"): programs that are loaded only when they are asked for.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("?tp/sched/sched_switch")
int not_unless_asked(void *ctx)
{
	return 1;
}

SEC("tp/sched/sched_switch")
int always(void *ctx)
{
	return 0;
}

SEC("?raw_tp/sys_enter")
int nor_this(void *ctx)
{
	return 2;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
