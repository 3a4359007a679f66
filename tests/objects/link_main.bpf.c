// The half with the programs: what it calls and reads is defined in link_library.
//
// link whole: link_library
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern __u64 library_scale(__u64 x);
extern __u64 library_weak(__u64 x);
extern __u64 library_calls;
extern const volatile __u32 library_limit;

extern struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} library_map SEC(".maps");

static __noinline __u64 same_name(__u64 x)
{
	return x + 1;
}

// Both halves define it; the strong one is the library's.
__weak __noinline int overridden(int x)
{
	return x - 1;
}

__u64 main_result;

SEC("raw_tp/sys_enter")
int main_program(void *ctx)
{
	__u32 key = 1;
	__u64 *value = bpf_map_lookup_elem(&library_map, &key);

	main_result = same_name(library_scale(library_limit)) + overridden(10);
	main_result += library_weak(1);
	if (value)
		main_result += *value;
	return library_calls;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
