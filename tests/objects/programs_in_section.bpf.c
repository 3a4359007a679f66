// Several programs in one section, and a section that holds no program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/sched/sched_switch")
int first(void *ctx)
{
	return 0;
}

SEC("tp/sched/sched_switch")
int second(void *ctx)
{
	return bpf_get_smp_processor_id() & 1;
}

SEC("tp/sched/sched_switch")
int third(void *ctx)
{
	return bpf_ktime_get_ns() & 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
