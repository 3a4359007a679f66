// Addresses of kernel variables, right and wrong. Linux has them only with CONFIG_KALLSYMS_ALL.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rq {
	int cpu;
	unsigned int nr_running;
};
#pragma clang attribute pop

extern const int bpf_prog_active __ksym;
extern const struct rq runqueues __ksym;

__u64 seen;

SEC("raw_tp/sys_enter")
int on_this_cpu(void *ctx)
{
	int *active = bpf_this_cpu_ptr(&bpf_prog_active);

	seen = *active;
	return 0;
}

SEC("raw_tp/sys_enter")
int on_another_cpu(void *ctx)
{
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, 1);

	if (rq)
		seen = rq->cpu + rq->nr_running;
	return 0;
}

SEC("raw_tp/sys_enter")
int forgets_null(void *ctx)
{
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, 1);

	seen = rq->cpu;
	return 0;
}

SEC("raw_tp/sys_enter")
int not_of_a_cpu(void *ctx)
{
	seen = runqueues.cpu;
	return 0;
}

SEC("raw_tp/sys_enter")
int reads_past(void *ctx)
{
	int *active = bpf_this_cpu_ptr(&bpf_prog_active);

	seen = active[1];
	return 0;
}

SEC("raw_tp/sys_enter")
int writes(void *ctx)
{
	int *active = bpf_this_cpu_ptr(&bpf_prog_active);

	*active = 1;
	return 0;
}

SEC("raw_tp/sys_enter")
int writes_structure(void *ctx)
{
	struct rq *rq = bpf_this_cpu_ptr(&runqueues);

	rq->cpu = 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
