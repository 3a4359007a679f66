// A scheduler: an idle CPU gets the task at once; the others wait by virtual time.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_ext_entity {
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
};
struct task_struct {
	int pid;
	struct sched_ext_entity scx;
};
struct scx_init_task_args {
	bool fork;
};
struct scx_exit_info {
	int kind;
	__s64 exit_code;
};
#pragma clang attribute pop
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, bool);
	void (*enable)(struct task_struct *);
	__s32 (*init_task)(struct task_struct *, struct scx_init_task_args *);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	__u32 dispatch_max_batch;
	__u64 flags;
	char name[128];
};

extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
				    bool *is_idle) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice,
			       __u64 enq_flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice,
				     __u64 vtime, __u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
extern void scx_bpf_exit_bstr(__s64 exit_code, char *fmt, unsigned long long *data,
			      __u32 data__sz) __ksym;
extern void scx_bpf_error_bstr(char *fmt, unsigned long long *data, __u32 data__sz) __ksym;

#define SHARED 7
#define LOCAL ((1ULL << 63) | 2)
#define SLICE 10000000

__u64 vtime_now;
__u64 other_queue;
__u64 other_flags;
__u64 ends;
__u64 last;
__s64 exit_kind;
__u64 longest;

SEC("struct_ops")
__s32 BPF_PROG(selects, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, LOCAL, SLICE, 0);
	return cpu;
}

SEC("struct_ops")
void BPF_PROG(enqueues, struct task_struct *p, __u64 flags)
{
	__u64 vtime = p->scx.dsq_vtime;

	if (other_queue) {
		scx_bpf_dsq_insert(p, other_queue, SLICE, flags | other_flags);
		return;
	}
	// Who slept long gets one slice in advance, not more.
	if ((__s64)(vtime - (vtime_now - SLICE)) < 0)
		vtime = vtime_now - SLICE;
	scx_bpf_dsq_insert_vtime(p, SHARED, SLICE, vtime, flags);
	if (scx_bpf_dsq_nr_queued(SHARED) > longest)
		longest = scx_bpf_dsq_nr_queued(SHARED);
}

SEC("struct_ops")
void BPF_PROG(dispatches, __s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(SHARED);
}

SEC("struct_ops")
void BPF_PROG(runs, struct task_struct *p)
{
	if ((__s64)(vtime_now - p->scx.dsq_vtime) < 0)
		vtime_now = p->scx.dsq_vtime;
}

SEC("struct_ops")
void BPF_PROG(stops, struct task_struct *p, bool runnable)
{
	static char text[] = "task %d has no weight";
	unsigned long long pid = p->pid;

	if (ends) {
		scx_bpf_exit_bstr(0, text, &pid, sizeof(pid));
		return;
	}
	if (!p->scx.weight) {
		scx_bpf_error_bstr(text, &pid, sizeof(pid));
		return;
	}
	p->scx.dsq_vtime += (SLICE - p->scx.slice) * 100 / p->scx.weight;
}

SEC("struct_ops")
void BPF_PROG(enables, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

SEC("struct_ops.s")
__s32 BPF_PROG(inits)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC("struct_ops")
void BPF_PROG(exits, struct scx_exit_info *info)
{
	exit_kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops by_vtime = {
	.select_cpu = (void *)selects,
	.enqueue = (void *)enqueues,
	.dispatch = (void *)dispatches,
	.running = (void *)runs,
	.stopping = (void *)stops,
	.enable = (void *)enables,
	.init = (void *)inits,
	.exit = (void *)exits,
	.name = "by_vtime",
};

// It decides whether a task runs on that no other one waits for (SCX_OPS_ENQ_LAST, SCX_ENQ_LAST).
SEC("struct_ops")
void BPF_PROG(enqueues_last, struct task_struct *p, __u64 flags)
{
	if (flags & (1ULL << 41))
		last++;
	scx_bpf_dsq_insert(p, LOCAL, SLICE, flags);
}

SEC(".struct_ops.link")
struct sched_ext_ops asks_last = {
	.enqueue = (void *)enqueues_last,
	.flags = 1 << 1,
	.name = "asks_last",
};

// Nothing but a name: the kernel does all itself.
SEC(".struct_ops.link")
struct sched_ext_ops plain = {
	.name = "plain",
};

char LICENSE[] SEC("license") = "GPL";
