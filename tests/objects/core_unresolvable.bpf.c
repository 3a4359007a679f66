// CO-RE relocations that no kernel resolves. One program guards the access, so that
// the poisoned instruction is never reached; the other does not.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct task_struct {
	int pid;
	int bpflab_no_such_field;
} __attribute__((preserve_access_index));

__s32 value;

SEC("raw_tp/sys_enter")
int guarded(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (bpf_core_field_exists(task->bpflab_no_such_field))
		value = BPF_CORE_READ(task, bpflab_no_such_field);
	else
		value = BPF_CORE_READ(task, pid);
	return 0;
}

SEC("?raw_tp/sys_enter")
int unguarded(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	value = BPF_CORE_READ(task, bpflab_no_such_field);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
