// How long do tasks wait for a CPU? The time from a task's wakeup, or from being
// preempted, until a CPU switches to it, in microseconds by powers of two.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "slots.h"
#include "tracepoint.h"

// In `prev_state`: the task was preempted, and stays runnable (TASK_REPORT_MAX,
// include/linux/sched.h).
#define PREEMPTED 0x100

struct trace_event_raw_sched_wakeup_template {
	struct trace_entry ent;
	char comm[16];
	int pid;
} __attribute__((preserve_access_index));

struct trace_event_raw_sched_switch {
	struct trace_entry ent;
	char prev_comm[16];
	int prev_pid;
	int prev_prio;
	long prev_state;
	char next_comm[16];
	int next_pid;
	int next_prio;
} __attribute__((preserve_access_index));

// Waiting tasks, by pid, with the time at which they began to wait.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} waiting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

// Only threads of this process; 0: all tasks. Set before the object is loaded.
const volatile __u32 wanted_pid;

// A task begins to wait. If it is woken twice, the first time counts.
static __always_inline int waits(__u32 pid)
{
	__u64 now = bpf_ktime_get_ns();

	// Each CPU has an idle task, all with pid 0.
	if (pid && (!wanted_pid || pid == wanted_pid))
		bpf_map_update_elem(&waiting, &pid, &now, BPF_NOEXIST);
	return 0;
}

SEC("tp/sched/sched_wakeup")
int wakeup(struct trace_event_raw_sched_wakeup_template *ctx)
{
	return waits(ctx->pid);
}

SEC("tp/sched/sched_wakeup_new")
int wakeup_new(struct trace_event_raw_sched_wakeup_template *ctx)
{
	return waits(ctx->pid);
}

SEC("tp/sched/sched_switch")
int switches(struct trace_event_raw_sched_switch *ctx)
{
	__u32 next = ctx->next_pid, slot;
	__u64 *since, *count;

	if (!ctx->prev_state || ctx->prev_state & PREEMPTED)
		waits(ctx->prev_pid);

	since = bpf_map_lookup_elem(&waiting, &next);
	if (!since)
		return 0;
	slot = slot_of((bpf_ktime_get_ns() - *since) / 1000);
	bpf_map_delete_elem(&waiting, &next);
	count = bpf_map_lookup_elem(&hist, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
