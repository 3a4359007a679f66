// A pointer that was walked to is passed to a kfunc that needs a valid object.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct task_struct {
	struct task_struct *last_wakee;
	int pid;
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task, __u64 clone_flags)
{
	struct task_struct *wakee = bpf_task_acquire(task->last_wakee);

	if (wakee)
		bpf_task_release(wakee);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
