// The types of a kernel with sched_ext that is made up: what scheduler.bpf.c and
// scheduler_rest.bpf.c use of it.
#include <linux/types.h>

struct cpumask {
	unsigned long bits[1];
} a_mask;
struct sched_ext_entity {
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
};
struct task_struct {
	int pid;
	int tgid;
	char comm[16];
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
} a_task;
struct scx_init_task_args {
	_Bool fork;
} some_arguments;
struct scx_exit_info {
	int kind;
	__s64 exit_code;
	const char *msg;
} an_exit;
struct scx_dispatch_q {
	__u32 nr;
};
struct scx_rq {
	struct scx_dispatch_q local_dsq;
	__u32 cpuperf_target;
};
struct rq {
	struct task_struct *curr;
	struct scx_rq scx;
	int cpu;
} a_queue;
enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT,
};
struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
} a_release;
struct scx_cpu_acquire_args {
} an_acquisition;
struct bpf_iter_scx_dsq {
	__u64 __opaque[6];
} an_iterator;
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
} counters;
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	void (*tick)(struct task_struct *);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, _Bool);
	void (*cpu_acquire)(__s32, struct scx_cpu_acquire_args *);
	void (*cpu_release)(__s32, struct scx_cpu_release_args *);
	void (*enable)(struct task_struct *);
	__s32 (*init_task)(struct task_struct *, struct scx_init_task_args *);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	__u32 dispatch_max_batch;
	__u64 flags;
	char name[128];
};
struct bpf_struct_ops_common_value {
	int refcnt;
	int state;
};
struct bpf_struct_ops_sched_ext_ops {
	struct bpf_struct_ops_common_value common;
	struct sched_ext_ops data;
} ops_value;

void sched_ext_ops__dispatch(__s32 prev_cpu, struct task_struct *prev__nullable)
{
}

__s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
			     _Bool *is_idle)
{
	return 0;
}

void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags)
{
}

void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 vtime,
			      __u64 enq_flags)
{
}

_Bool scx_bpf_dsq_move_to_local(__u64 dsq_id)
{
	return 0;
}

__s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node)
{
	return 0;
}

__s32 scx_bpf_dsq_nr_queued(__u64 dsq_id)
{
	return 0;
}

void scx_bpf_kick_cpu(__s32 cpu, __u64 flags)
{
}

void scx_bpf_exit_bstr(__s64 exit_code, char *fmt, unsigned long long *data, __u32 data__sz)
{
}

void scx_bpf_error_bstr(char *fmt, unsigned long long *data, __u32 data__sz)
{
}

struct task_struct *bpf_task_from_pid(__s32 pid)
{
	return 0;
}

void bpf_task_release(struct task_struct *p)
{
}

__u32 scx_bpf_dispatch_nr_slots(void)
{
	return 0;
}

void scx_bpf_dispatch_cancel(void)
{
}

__u32 scx_bpf_reenqueue_local(void)
{
	return 0;
}

void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it__iter, __u64 slice)
{
}

void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, __u64 vtime)
{
}

_Bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, __u64 dsq_id,
		       __u64 enq_flags)
{
	return 0;
}

_Bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
			     __u64 dsq_id, __u64 enq_flags)
{
	return 0;
}

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags)
{
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	return 0;
}

void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
}

__s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, __u64 flags)
{
	return 0;
}

__s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *cpus_allowed, int node, __u64 flags)
{
	return 0;
}

__s32 scx_bpf_pick_any_cpu_node(const struct cpumask *cpus_allowed, int node, __u64 flags)
{
	return 0;
}

struct rq *scx_bpf_cpu_rq(__s32 cpu)
{
	return 0;
}

struct rq *scx_bpf_locked_rq(void)
{
	return 0;
}

void scx_bpf_events(struct scx_event_stats *events, unsigned long events__sz)
{
}
