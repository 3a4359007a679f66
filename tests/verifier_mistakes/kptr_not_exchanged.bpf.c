// A kernel pointer is stored to a map with an assignment.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define __kptr __attribute__((btf_type_tag("kptr")))

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

struct value {
	struct task_struct __kptr *task;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct value);
} tasks SEC(".maps");

extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task, __u64 clone_flags)
{
	struct value *value;
	__u32 slot = 0;

	value = bpf_map_lookup_elem(&tasks, &slot);
	if (!value)
		return 0;
	task = bpf_task_acquire(task);
	if (!task)
		return 0;
	value->task = task;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
