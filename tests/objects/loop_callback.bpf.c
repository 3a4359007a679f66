// Callbacks: bpf_loop and bpf_for_each_map_elem with static functions.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} numbers SEC(".maps");

struct bpf_map;

struct sum {
	__u64 total, stop_at;
};

static long add_index(__u32 index, struct sum *sum)
{
	sum->total += index;
	return index == sum->stop_at;
}

static long add_value(struct bpf_map *map, __u32 *key, __u64 *value, struct sum *sum)
{
	sum->total += *value * (*key + 1);
	return 0;
}

__u64 loop_total, map_total;
__s64 rounds;

SEC("raw_tp/sys_enter")
int loops(void *ctx)
{
	struct sum sum = { .stop_at = 9 };

	rounds = bpf_loop(100, add_index, &sum, 0);
	loop_total = sum.total;
	sum.total = 0;
	bpf_for_each_map_elem(&numbers, add_value, &sum, 0);
	map_total = sum.total;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
