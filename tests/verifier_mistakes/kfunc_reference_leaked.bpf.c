// A task that a kfunc acquired is not released.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

int init_pid;

extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task, __u64 clone_flags)
{
	struct task_struct *init = bpf_task_from_pid(1);

	if (!init)
		return 0;
	init_pid = init->pid;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
