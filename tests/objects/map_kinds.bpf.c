// One map of each kind that BTF-defined maps commonly have, with pinning, flags and
// a type that only the map's declaration names.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct entry {
	__u32 pid;
	char comm[16];
	__u64 since;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct entry);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u32);
} per_cpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8);
	__uint(key_size, 12);
	__uint(value_size, 20);
} sizes_only SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(int));
	__uint(value_size, sizeof(int));
} per_cpu_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 64);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

SEC("tp/sched/sched_switch")
int use_maps(void *ctx)
{
	struct entry entry = { .pid = bpf_get_current_pid_tgid() >> 32 };
	__u32 zero = 0, *count = bpf_map_lookup_elem(&per_cpu, &zero);
	__u32 words[3] = { entry.pid };

	if (count)
		++*count;
	entry.since = bpf_ktime_get_ns();
	bpf_get_current_comm(entry.comm, sizeof(entry.comm));
	bpf_map_update_elem(&entries, &entry.pid, &entry, BPF_ANY);
	bpf_map_delete_elem(&sizes_only, words);
	bpf_ringbuf_output(&records, &entry, sizeof(entry), 0);
	bpf_perf_event_output(ctx, &per_cpu_records, BPF_F_CURRENT_CPU, &entry, sizeof(entry));
	bpf_get_stackid(ctx, &stacks, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
