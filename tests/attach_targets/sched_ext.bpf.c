// Schedulers, right and wrong: tasks that may be null, what of a task may be written, sleep.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_ext_entity {
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
	bool disallow;
};
struct task_struct {
	int pid;
	struct sched_ext_entity scx;
};
struct scx_exit_info {
	__s64 exit_code;
};
#pragma clang attribute pop
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	bool (*yield)(struct task_struct *, struct task_struct *);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	__u64 flags;
	char name[128];
};

extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
				    bool *is_idle) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice,
			       __u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} turns SEC(".maps");

__s64 exit_code;

SEC("struct_ops")
__s32 BPF_PROG(selects, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, 1, 20000000, 0);
	return cpu;
}

SEC("struct_ops")
void BPF_PROG(enqueues, struct task_struct *p, __u64 flags)
{
	__u64 *turn = bpf_task_storage_get(&turns, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (turn)
		(*turn)++;
	p->scx.slice = 20000000;
	p->scx.dsq_vtime = 0;
	p->scx.disallow = true;
	scx_bpf_dsq_insert(p, 0, p->scx.slice, flags);
}

SEC("struct_ops")
void BPF_PROG(writes_weight, struct task_struct *p, __u64 flags)
{
	p->scx.weight = 1;
}

SEC("struct_ops")
void BPF_PROG(writes_part, struct task_struct *p, __u64 flags)
{
	*((__u32 *)&p->scx.slice + 1) = 1;
}

SEC("struct_ops.s")
void BPF_PROG(sleeps, struct task_struct *p, __u64 flags)
{
	scx_bpf_create_dsq(0, -1);
}

SEC("struct_ops")
void BPF_PROG(dispatches, __s32 cpu, struct task_struct *prev)
{
	if (prev)
		scx_bpf_dsq_insert(prev, 0, 1, 0);
	scx_bpf_dsq_move_to_local(0);
}

SEC("struct_ops")
void BPF_PROG(trusts, __s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_insert(prev, 0, prev->pid, 0);
}

SEC("struct_ops")
bool BPF_PROG(yields, struct task_struct *from, struct task_struct *to)
{
	return to && to->pid > from->pid;
}

SEC("struct_ops.s")
__s32 BPF_PROG(begins)
{
	return scx_bpf_create_dsq(0, -1);
}

SEC("struct_ops")
__s32 BPF_PROG(begins_awake)
{
	return scx_bpf_create_dsq(0, -1);
}

SEC("struct_ops")
void BPF_PROG(ends, struct scx_exit_info *info)
{
	exit_code = info->exit_code;
}

#define TABLE(name, member) \
	SEC(".struct_ops.link") struct sched_ext_ops name##_ops = { .member = (void *)name }

SEC(".struct_ops.link")
struct sched_ext_ops whole = {
	.select_cpu = (void *)selects,
	.enqueue = (void *)enqueues,
	.dispatch = (void *)dispatches,
	.yield = (void *)yields,
	.init = (void *)begins,
	.exit = (void *)ends,
	.name = "whole",
};
TABLE(writes_weight, enqueue);
TABLE(writes_part, enqueue);
TABLE(sleeps, enqueue);
TABLE(trusts, dispatch);
TABLE(begins_awake, init);

char LICENSE[] SEC("license") = "GPL";
