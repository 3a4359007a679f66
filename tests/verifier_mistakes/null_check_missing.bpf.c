// The result of a lookup is used without a test for NULL.
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
	__u64 *count = bpf_map_lookup_elem(&hist, &slot);

	*count += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
