// One path does not set the pointer that is read afterwards.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __noinline int find(struct xdp_md *ctx, __u64 **count)
{
	__u32 key = 0;

	if (ctx->rx_queue_index == 0)
		return 1;
	*count = bpf_map_lookup_elem(&counts, &key);
	return 0;
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	__u64 *count;

	find(ctx, &count);
	if (!count)
		return XDP_PASS;
	*count += 1;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
