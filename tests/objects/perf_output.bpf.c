// Records through a perf event array, one buffer for each CPU.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct record {
	__u64 at;
	__u32 pid, cpu;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} records SEC(".maps");

SEC("tp/syscalls/sys_enter_openat")
int on_open(void *ctx)
{
	struct record record = {
		.at = bpf_ktime_get_ns(),
		.pid = bpf_get_current_pid_tgid() >> 32,
		.cpu = bpf_get_smp_processor_id(),
	};

	return bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &record, sizeof(record));
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
