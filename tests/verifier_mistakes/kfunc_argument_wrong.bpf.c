// A kfunc gets an object of another type.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct cgroup {
	int level;
} __attribute__((preserve_access_index));

extern struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task, __u64 clone_flags)
{
	struct cgroup *group = bpf_cgroup_acquire((void *)task);

	if (group)
		bpf_cgroup_release(group);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
