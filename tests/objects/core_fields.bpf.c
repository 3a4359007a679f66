// CO-RE relocations of fields: offsets through pointers and arrays, sizes, existence,
// and a type whose name has a flavour.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct mm_struct;

struct task_struct {
	int pid;
	int tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct mm_struct *mm;
} __attribute__((preserve_access_index));

// The kernel before 5.14 had this; the part after ___ does not count.
struct task_struct___old {
	long state;
} __attribute__((preserve_access_index));

__s32 tgid, parent_tgid;
__u32 comm_size, comm_offset, has_state, has_pid, pid_is_signed;
char comm[16];

SEC("raw_tp/sys_enter")
int read_fields(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	tgid = BPF_CORE_READ(task, tgid);
	parent_tgid = BPF_CORE_READ(task, real_parent, tgid);
	BPF_CORE_READ_STR_INTO(&comm, task, comm);
	comm_size = bpf_core_field_size(task->comm);
	comm_offset = __builtin_preserve_field_info(task->comm, BPF_FIELD_BYTE_OFFSET);
	pid_is_signed = __builtin_preserve_field_info(task->pid, BPF_FIELD_SIGNED);
	has_pid = bpf_core_field_exists(task->pid);
	if (bpf_core_field_exists(((struct task_struct___old *)0)->state))
		has_state = BPF_CORE_READ((struct task_struct___old *)task, state) + 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
