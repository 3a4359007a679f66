// Maps whose values are maps, with initial values: in an array with a hole, in a
// hash, and a template without values.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} inner_a SEC(".maps"), inner_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, struct inner);
} outer_array SEC(".maps") = {
	.values = { [0] = &inner_a, [3] = &inner_b },
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 8);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_HASH);
		__uint(max_entries, 5);
		__type(key, __u32);
		__type(value, __u32);
	});
} outer_hash SEC(".maps");

SEC("raw_tp/sys_enter")
int count_inner(void *ctx)
{
	__u32 slot = 3, zero = 0;
	void *inner = bpf_map_lookup_elem(&outer_array, &slot);
	__u64 *count;

	if (!inner)
		return 1;
	count = bpf_map_lookup_elem(inner, &zero);
	if (!count)
		return 2;
	++*count;
	return bpf_map_lookup_elem(&outer_hash, &zero) != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
