// Storage that belongs to tasks and cgroups.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define BPF_MAP_TYPE_CGRP_STORAGE_ 32

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));
struct cgroup;

struct visits {
	__u64 count;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct visits);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE_);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} cgroups SEC(".maps");

// How often a task was switched to, beginning with 100.
SEC("tp_btf/sched_switch")
int BPF_PROG(count_switches, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct visits initial = { .count = 100 };
	struct visits *visits;

	visits = bpf_task_storage_get(&tasks, next, &initial, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!visits)
		return 1;
	visits->count++;
	visits->last = prev->pid;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(forget, struct task_struct *task)
{
	return bpf_task_storage_delete(&tasks, task);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(mark_cgroup, struct cgroup *cgroup, const char *path)
{
	__u64 *mark = bpf_cgrp_storage_get(&cgroups, cgroup, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (mark)
		*mark = 42;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
