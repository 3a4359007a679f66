// A field that is not in the kernel's BTF is read without a check that it exists.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct task_struct {
	int pid;
	int no_such_field;
} __attribute__((preserve_access_index));

SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[1];

	return BPF_CORE_READ(task, no_such_field) != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
