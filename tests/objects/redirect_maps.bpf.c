// Maps that packets are redirected by: devices, CPUs, sockets; look-ups of their values.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} devices_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} socks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 4);
	__type(key, __u64);
	__type(value, __u64);
} socks_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} listeners SEC(".maps");

__u32 slot;
__u64 flags;
__u32 seen_device;

SEC("xdp")
int to_device(struct xdp_md *ctx)
{
	struct bpf_devmap_val *value = bpf_map_lookup_elem(&devices, &slot);

	seen_device = value ? value->ifindex : 0;
	return bpf_redirect_map(&devices, slot, flags);
}

SEC("xdp")
int to_device_by_key(struct xdp_md *ctx)
{
	return bpf_redirect_map(&devices_by_key, slot, flags);
}

SEC("xdp")
int to_cpu(struct xdp_md *ctx)
{
	return bpf_redirect_map(&cpus, slot, flags);
}

SEC("xdp")
int to_queue(struct xdp_md *ctx)
{
	if (!bpf_map_lookup_elem(&queues, &slot))
		return XDP_DROP;
	return bpf_redirect_map(&queues, slot, XDP_PASS);
}

SEC("sk_skb/stream_verdict")
int to_socket(struct __sk_buff *skb)
{
	__u64 key = slot;

	if (flags)
		return bpf_sk_redirect_hash(skb, &socks_by_key, &key, 0);
	return bpf_sk_redirect_map(skb, &socks, slot, 0);
}

SEC("sk_reuseport")
int choose(struct sk_reuseport_md *ctx)
{
	return bpf_sk_select_reuseport(ctx, &listeners, &slot, 0) ? SK_DROP : SK_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
