// Who executes which programs? A record in a ring buffer for each successful exec.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "tracepoint.h"

struct trace_event_raw_sched_process_exec {
	struct trace_entry ent;
	__u32 __data_loc_filename;
	int pid;
	int old_pid;
} __attribute__((preserve_access_index));

struct task_struct {
	int tgid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

struct event {
	__u32 pid;
	__u32 ppid;
	__u32 uid;
	char comm[16];
	// Truncated to this size.
	char filename[128];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

const struct event *keep_type_event __attribute__((unused));

// Execs while the ring buffer was full.
__u64 lost;

SEC("tp/sched/sched_process_exec")
int on_exec(struct trace_event_raw_sched_process_exec *ctx)
{
	__u32 offset = ctx->__data_loc_filename & 0xffff;
	struct task_struct *task = (void *)bpf_get_current_task();
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	event->pid = bpf_get_current_pid_tgid() >> 32;
	event->ppid = BPF_CORE_READ(task, real_parent, tgid);
	event->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	bpf_probe_read_kernel_str(event->filename, sizeof(event->filename), (void *)ctx + offset);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
