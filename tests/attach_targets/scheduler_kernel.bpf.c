// The types of a kernel with sched_ext that is made up: what scheduler.bpf.c uses of it.
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
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, _Bool);
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
