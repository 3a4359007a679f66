// A field of a kernel object is written.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task, __u64 clone_flags)
{
	task->pid = 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
