// Global functions whose arguments may be any number (`arg:untrusted`): what they lead to is
// read as the kernel reads memory that may not be there.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define UNTRUSTED __attribute__((btf_decl_tag("arg:untrusted")))

struct task_struct {
	int pid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

__attribute__((noinline)) int pid_of(struct task_struct *task UNTRUSTED)
{
	return task->pid;
}

__attribute__((noinline)) int parent_of(struct task_struct *task UNTRUSTED)
{
	return task->real_parent->pid;
}

__attribute__((noinline)) int number_at(int *number UNTRUSTED)
{
	return *number;
}

SEC("raw_tp/sched_process_exec")
int pids(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	return pid_of(task) * 100 + parent_of(task) * 10 + 1;
}

SEC("raw_tp/sched_process_exec")
int numbers(struct bpf_raw_tracepoint_args *ctx)
{
	return number_at((void *)ctx->args[0]) + 1;
}

char LICENSE[] SEC("license") = "GPL";
