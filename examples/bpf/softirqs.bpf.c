// How often does each kind of softirq run, on each CPU? The tracepoint's record has the
// vector: 0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, 4 BLOCK, 5 IRQ_POLL, 6 TASKLET, 7 SCHED,
// 8 HRTIMER, 9 RCU (include/linux/interrupt.h).
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tracepoint.h"

#define NR_SOFTIRQS 10

struct trace_event_raw_softirq {
	struct trace_entry ent;
	unsigned int vec;
} __attribute__((preserve_access_index));

// Counts are per CPU, so no other CPU adds to them.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_SOFTIRQS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

SEC("tp/irq/softirq_entry")
int count_softirq(struct trace_event_raw_softirq *ctx)
{
	__u32 vector = ctx->vec;
	__u64 *count = bpf_map_lookup_elem(&counts, &vector);

	if (count)
		*count += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
