// A tail call that may lead to a program of which no firing can be recorded, since it walks
// over a hash table; and one that may lead to a program that can be.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int walks(void *ctx);
int counts(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} mixed SEC(".maps") = {
	.values = { [0] = (void *)&walks, [1] = (void *)&counts },
};

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} recorded SEC(".maps") = {
	.values = { [0] = (void *)&counts },
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

__u64 counted, walked, led;

static long each(void *map, __u32 *key, __u64 *value, void *ctx)
{
	return 0;
}

SEC("raw_tp")
int walks(void *ctx)
{
	bpf_for_each_map_elem(&table, each, 0, 0);
	__sync_fetch_and_add(&walked, 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int counts(void *ctx)
{
	__sync_fetch_and_add(&counted, 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int to_mixed(void *ctx)
{
	__sync_fetch_and_add(&led, 1);
	bpf_tail_call(ctx, &mixed, bpf_get_smp_processor_id() & 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int to_recorded(void *ctx)
{
	bpf_tail_call(ctx, &recorded, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
