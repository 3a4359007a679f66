// The key's variable is smaller than the key in the map's definition.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u64);
	__type(value, __u64);
} by_cgroup SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u32 cgroup = bpf_get_current_cgroup_id();
	__u64 *count = bpf_map_lookup_elem(&by_cgroup, &cgroup);

	if (count)
		*count += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
