// How do processes end? A record for each exit: the parent, the lifetime, and the exit
// code or the signal that killed the process. A BTF tracepoint gets the task as a
// typed pointer, so it reads fields directly, without a helper.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	int exit_code;
	__u64 start_time;
	char comm[16];
} __attribute__((preserve_access_index));

struct event {
	__u32 pid;
	__u32 ppid;
	__u32 status;
	__u32 signal;
	__u64 lived_ms;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

const struct event *keep_type_event __attribute__((unused));

// Processes that ended while the ring buffer was full.
__u64 lost;

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct event *event;

	// Threads exit, too; only the exit of the first thread counts.
	if (task->pid != task->tgid)
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	event->pid = task->tgid;
	event->ppid = task->real_parent->tgid;
	// As in wait(2): the low 7 bits are the signal, bits 8 to 15 the exit status.
	event->status = task->exit_code >> 8 & 0xff;
	event->signal = task->exit_code & 0x7f;
	event->lived_ms = (bpf_ktime_get_ns() - task->start_time) / 1000000;
	__builtin_memcpy(event->comm, task->comm, sizeof(event->comm));
	bpf_ringbuf_submit(event, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
