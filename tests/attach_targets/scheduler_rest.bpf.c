// Schedulers for the kfuncs that scheduler.bpf.c does not call, one for each topic.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {};
struct sched_ext_entity {
	__u64 slice;
	__u64 dsq_vtime;
};
struct task_struct {
	int pid;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};
struct scx_dispatch_q {
	__u32 nr;
};
struct scx_rq {
	struct scx_dispatch_q local_dsq;
};
struct rq {
	struct task_struct *curr;
	int cpu;
	struct scx_rq scx;
};
enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT,
};
struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
};
#pragma clang attribute pop
struct scx_cpu_acquire_args {};
struct bpf_iter_scx_dsq {
	__u64 __opaque[6];
};
struct scx_event_stats {
	__s64 SCX_EV_SELECT_CPU_FALLBACK;
	__s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	__s64 SCX_EV_DISPATCH_KEEP_LAST;
	__s64 SCX_EV_ENQ_SKIP_EXITING;
	__s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
	__s64 SCX_EV_REFILL_SLICE_DFL;
	__s64 SCX_EV_BYPASS_DURATION;
	__s64 SCX_EV_BYPASS_DISPATCH;
	__s64 SCX_EV_BYPASS_ACTIVATE;
};
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	void (*tick)(struct task_struct *);
	void (*cpu_acquire)(__s32, struct scx_cpu_acquire_args *);
	void (*cpu_release)(__s32, struct scx_cpu_release_args *);
	__s32 (*init)(void);
	__u32 dispatch_max_batch;
	__u64 flags;
	char name[128];
};

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice,
			       __u64 enq_flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice,
				     __u64 vtime, __u64 enq_flags) __ksym;
extern __u32 scx_bpf_dispatch_nr_slots(void) __ksym;
extern void scx_bpf_dispatch_cancel(void) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;
extern __u32 scx_bpf_reenqueue_local(void) __ksym;
extern void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, __u64 slice) __ksym;
extern void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, __u64 vtime) __ksym;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
			     __u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				   __u64 dsq_id, __u64 enq_flags) __ksym;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *mask, __u64 flags) __ksym;
extern __s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *mask, int node, __u64 flags) __ksym;
extern __s32 scx_bpf_pick_any_cpu_node(const struct cpumask *mask, int node, __u64 flags) __ksym;
extern struct rq *scx_bpf_cpu_rq(__s32 cpu) __ksym;
extern struct rq *scx_bpf_locked_rq(void) __ksym;
extern void scx_bpf_events(struct scx_event_stats *events, unsigned long events__sz) __ksym;

#define SHARED 7
#define OTHER 8
#define LOCAL ((1ULL << 63) | 2)
#define SLICE 10000000
#define ENQ_REENQ (1ULL << 40)

// What each kfunc said, for the test.
__s64 results[4];

// holds: tasks wait in a map, and `dispatch` takes some of its dispatches back.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__type(value, __u32);
} waiting SEC(".maps");
__u32 cancels;
bool moves_between;

SEC("struct_ops")
void BPF_PROG(holds_enqueue, struct task_struct *p, __u64 flags)
{
	__u32 pid = p->pid;

	bpf_map_push_elem(&waiting, &pid, 0);
}

SEC("struct_ops")
void BPF_PROG(holds_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u32 pid;
	int i;

	results[0] = scx_bpf_dispatch_nr_slots();
	for (i = 0; i < 4; i++) {
		struct task_struct *p;

		if (bpf_map_pop_elem(&waiting, &pid))
			break;
		p = bpf_task_from_pid(pid);
		if (!p)
			continue;
		scx_bpf_dsq_insert(p, LOCAL, SLICE, 0);
		bpf_task_release(p);
	}
	results[1] = scx_bpf_dispatch_nr_slots();
	if (moves_between)
		scx_bpf_dsq_move_to_local(SHARED);
	for (i = 0; i < 4 && i < cancels; i++)
		scx_bpf_dispatch_cancel();
	results[2] = scx_bpf_dispatch_nr_slots();
	results[3] = scx_bpf_dsq_nr_queued(LOCAL);
}

// No member that dispatches.
SEC("struct_ops")
void BPF_PROG(holds_tick, struct task_struct *p)
{
	scx_bpf_dispatch_cancel();
}

SEC("struct_ops.s")
__s32 BPF_PROG(creates)
{
	scx_bpf_create_dsq(OTHER, -1);
	return scx_bpf_create_dsq(SHARED, -1);
}

// An idle CPU gets no task at once.
SEC("struct_ops")
__s32 BPF_PROG(stays, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	return prev_cpu;
}

SEC(".struct_ops.link")
struct sched_ext_ops holds = {
	.select_cpu = (void *)stays,
	.enqueue = (void *)holds_enqueue,
	.dispatch = (void *)holds_dispatch,
	.tick = (void *)holds_tick,
	.init = (void *)creates,
	.dispatch_max_batch = 3,
	.name = "holds",
};

// moves: the first task of a queue gets another slice and virtual time on its way to another.
bool by_vtime;

SEC("struct_ops")
void BPF_PROG(moves_enqueue, struct task_struct *p, __u64 flags)
{
	scx_bpf_dsq_insert_vtime(p, SHARED, SLICE, p->pid, flags);
}

SEC("struct_ops")
void BPF_PROG(moves_dispatch, __s32 cpu, struct task_struct *prev)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	int moved = 0;

	bpf_iter_scx_dsq_new(&it, SHARED, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (!moved++) {
			scx_bpf_dsq_move_set_slice(&it, SLICE / 2);
			scx_bpf_dsq_move_set_vtime(&it, 100);
		}
		if (by_vtime)
			scx_bpf_dsq_move_vtime(&it, p, OTHER, 0);
		else
			scx_bpf_dsq_move(&it, p, OTHER, 0);
		// It has left the queue.
		if (scx_bpf_dsq_move(&it, p, SHARED, 0))
			results[0]++;
	}
	bpf_iter_scx_dsq_destroy(&it);
	scx_bpf_dsq_move_to_local(OTHER);
}

SEC(".struct_ops.link")
struct sched_ext_ops moves = {
	.select_cpu = (void *)stays,
	.enqueue = (void *)moves_enqueue,
	.dispatch = (void *)moves_dispatch,
	.init = (void *)creates,
	.name = "moves",
};

// releases: a CPU that a higher class gets gives its tasks back.
__u64 reenqueued;
__u64 acquired;
__s32 reason = -1;
__s32 by;

SEC("struct_ops")
void BPF_PROG(releases_enqueue, struct task_struct *p, __u64 flags)
{
	struct rq *rq = scx_bpf_locked_rq();

	if (rq)
		results[1] = rq->cpu;
	if (flags & ENQ_REENQ) {
		reenqueued++;
		scx_bpf_dsq_insert(p, SHARED, SLICE, flags);
	} else {
		scx_bpf_dsq_insert(p, LOCAL, SLICE, flags);
	}
}

SEC("struct_ops")
void BPF_PROG(releases_dispatch, __s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(SHARED);
}

SEC("struct_ops")
void BPF_PROG(releases_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	reason = args->reason;
	by = args->task->pid;
	results[0] = scx_bpf_reenqueue_local();
}

SEC("struct_ops")
void BPF_PROG(releases_acquire, __s32 cpu, struct scx_cpu_acquire_args *args)
{
	acquired++;
}

SEC(".struct_ops.link")
struct sched_ext_ops releases = {
	.enqueue = (void *)releases_enqueue,
	.dispatch = (void *)releases_dispatch,
	.cpu_acquire = (void *)releases_acquire,
	.cpu_release = (void *)releases_release,
	.init = (void *)creates,
	.name = "releases",
};

// reads: run queues and counters.
__s32 other_cpu;
__u64 addresses[2];
__s32 current_pid;
bool asks_unlocked;
bool reenqueues;
struct scx_event_stats stats;
__u64 first_stat;

SEC("struct_ops")
__s32 BPF_PROG(reads_select, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	if (asks_unlocked)
		scx_bpf_locked_rq();
	return other_cpu;
}

SEC("struct_ops")
void BPF_PROG(reads_tick, struct task_struct *p)
{
	struct rq *rq = scx_bpf_cpu_rq(other_cpu), *locked = scx_bpf_locked_rq();
	struct task_struct *current = rq->curr;

	addresses[0] = (__u64)rq;
	addresses[1] = (__u64)locked;
	results[0] = rq->cpu;
	results[1] = rq->scx.local_dsq.nr;
	if (current)
		current_pid = current->pid;
	scx_bpf_events(&stats, sizeof(stats));
	scx_bpf_events((void *)&first_stat, sizeof(first_stat));
	if (reenqueues)
		scx_bpf_reenqueue_local();
}

SEC(".struct_ops.link")
struct sched_ext_ops reads = {
	.select_cpu = (void *)reads_select,
	.tick = (void *)reads_tick,
	.name = "reads",
};

// picks: idle CPUs of a node (SCX_OPS_BUILTIN_IDLE_PER_NODE).
int node;

SEC("struct_ops")
__s32 BPF_PROG(picks_select, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	__s32 cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, node, 0);

	results[0] = cpu;
	if (cpu < 0)
		results[1] = cpu = scx_bpf_pick_any_cpu_node(p->cpus_ptr, node, 2);
	return cpu < 0 ? prev_cpu : cpu;
}

SEC("struct_ops")
void BPF_PROG(picks_tick, struct task_struct *p)
{
	results[2] = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

SEC(".struct_ops.link")
struct sched_ext_ops picks = {
	.select_cpu = (void *)picks_select,
	.tick = (void *)picks_tick,
	.flags = 1 << 6,
	.name = "picks",
};

// The same without the flag.
SEC(".struct_ops.link")
struct sched_ext_ops picks_globally = {
	.select_cpu = (void *)picks_select,
	.name = "picks_globally",
};

char LICENSE[] SEC("license") = "GPL";
