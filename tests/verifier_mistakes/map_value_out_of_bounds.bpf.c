// A read that goes past the end of a map value.
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
	__u32 slot = 12;
	char *count = bpf_map_lookup_elem(&hist, &slot);

	if (!count)
		return 0;
	return *(volatile __u64 *)(count + 4) != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
