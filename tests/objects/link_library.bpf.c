// The half without an entry: functions, a map and variables for link_main.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} library_map SEC(".maps");

__u64 library_calls;
const volatile __u32 library_limit = 6;

static __noinline __u64 same_name(__u64 x)
{
	return x * 2;
}

__noinline __u64 library_scale(__u64 x)
{
	__u32 key = 1;

	library_calls++;
	bpf_map_update_elem(&library_map, &key, &x, BPF_ANY);
	return same_name(x);
}

// Nobody defines a strong one.
__weak __noinline __u64 library_weak(__u64 x)
{
	return x + 1000;
}

__noinline int overridden(int x)
{
	return x + 100;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
