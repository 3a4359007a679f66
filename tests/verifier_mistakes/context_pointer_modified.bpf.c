// A pointer into the context is passed where a helper takes the context itself.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u64 now = bpf_ktime_get_ns();

	bpf_perf_event_output(ctx + 8, &events, BPF_F_CURRENT_CPU, &now, sizeof(now));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
