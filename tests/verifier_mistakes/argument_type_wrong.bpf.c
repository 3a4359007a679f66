// A number is passed where a helper takes a pointer to the key.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u64 *count = bpf_map_lookup_elem(&hist, (void *)12);

	return count && *count > 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
