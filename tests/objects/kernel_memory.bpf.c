// What a program reads of the kernel's own memory: a task's fields through typed
// pointers and by BPF_CORE_READ, strings, variables, per-CPU variables.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

struct cred {
	struct {
		unsigned int val;
	} uid;
} __attribute__((preserve_access_index));

struct mm_struct {
	int map_count;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *cred;
	struct mm_struct *mm;
	unsigned in_execve : 1;
	char comm[16];
} __attribute__((preserve_access_index));

struct rq {
	unsigned int nr_running;
} __attribute__((preserve_access_index));

extern const struct rq runqueues __ksym;
extern const void vfs_read __ksym;
extern const void init_task __ksym __weak;

__s32 pid, tgid, parent, parent_core, grandparent, count, in_execve;
__u32 uid, running, running_there, on_missing;
__u64 vfs_read_address, init_task_address, same;
char comm[16];

SEC("tp_btf/sched_process_exec")
int BPF_PROG(read_directly, struct task_struct *task)
{
	pid = task->pid;
	tgid = task->tgid;
	parent = task->real_parent->tgid;
	grandparent = task->real_parent->real_parent->tgid;
	uid = task->cred->uid.val;
	count = task->mm->map_count;
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(read_by_core_read, struct task_struct *task)
{
	parent_core = BPF_CORE_READ(task, real_parent, tgid);
	grandparent = BPF_CORE_READ(task, real_parent, real_parent, tgid);
	uid = BPF_CORE_READ(task, cred, uid.val);
	in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
	return 0;
}

// Verified today: it runs on every engine.
SEC("raw_tp/sched_process_exec")
int read_raw(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct task_struct *current = (void *)bpf_get_current_task();
	__u64 nothing = 1;

	parent_core = BPF_CORE_READ(task, real_parent, tgid);
	pid = BPF_CORE_READ(current, pid);
	parent = BPF_CORE_READ(current, real_parent, tgid);
	count = BPF_CORE_READ(current, mm, map_count);
	bpf_probe_read_kernel_str(comm, sizeof(comm), current->comm);
	same = bpf_probe_read_kernel(&nothing, sizeof(nothing), (void *)4);
	return nothing;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(read_current, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();

	pid = current->pid;
	parent = current->real_parent->tgid;
	uid = current->cred->uid.val;
	bpf_probe_read_kernel_str(comm, sizeof(comm), current->comm);
	same = (__u64)current == bpf_get_current_task() && current == task;
	return 0;
}

// Per-CPU variables have addresses only in a kallsyms with data.
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(read_variables)
{
	const struct rq *rq = bpf_this_cpu_ptr(&runqueues);

	running = rq->nr_running;
	rq = bpf_per_cpu_ptr(&runqueues, 2);
	if (rq)
		running_there = rq->nr_running;
	rq = bpf_per_cpu_ptr(&runqueues, 4096);
	on_missing = rq != 0;
	vfs_read_address = (__u64)&vfs_read;
	init_task_address = (__u64)&init_task;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
