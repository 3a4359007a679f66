// What a program's own tool sets between opening the object and loading it: program types
// that section names do not say, the shape of inner maps, sizes, a pinning of its own.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, 16);
} outer SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} like SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(__u32));
} traces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
} sized SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} samples SEC(".maps");

SEC("?raw_tp/sys_enter")
int find_inner(void *ctx)
{
	__u32 key = 1;
	__u64 *value;
	void *inner = bpf_map_lookup_elem(&outer, &key);

	if (!inner)
		return 1;
	value = bpf_map_lookup_elem(inner, &key);
	return value ? *value : 2;
}

SEC("?raw_tp/sys_enter")
int send(void *ctx)
{
	__u64 value = 7;

	return bpf_ringbuf_output(&events, &value, sizeof(value), 0);
}

SEC("?raw_tp/sys_enter")
int trace(void *ctx)
{
	return bpf_get_stackid(ctx, &traces, 0) < 0;
}

SEC("?raw_tp/sys_enter")
int find_sized(void *ctx)
{
	__u32 key = 1;
	__u64 *value = bpf_map_lookup_elem(&sized, &key);

	return value ? *value : 0;
}

SEC("?raw_tp/sys_enter")
int sample(void *ctx)
{
	__u64 value = 7;

	return bpf_perf_event_output(ctx, &samples, BPF_F_CURRENT_CPU, &value, sizeof(value));
}

// Tail calls of a classifier are often numbered.
SEC("2/7")
int numbered(struct __sk_buff *skb)
{
	return skb->len > 100;
}

SEC("classifier/in")
int classify(struct __sk_buff *skb)
{
	return skb->protocol == 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
