// How many packets and bytes of each protocol arrive? Counts by IP protocol number
// (1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6, …), and all other packets under NOT_IP.
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8

#define NOT_IP 256
#define MAX_VLANS 2

struct ethernet {
	__u8 to[6], from[6];
	__be16 protocol;
} __attribute__((packed));

struct vlan {
	__be16 tag, protocol;
};

struct traffic {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NOT_IP + 1);
	__type(key, __u32);
	__type(value, struct traffic);
} traffic SEC(".maps");

static __always_inline __u32 protocol_of(void *at, void *end)
{
	struct ethernet *ethernet = at;
	__be16 protocol;

	if (at + sizeof(*ethernet) > end)
		return NOT_IP;
	protocol = ethernet->protocol;
	at += sizeof(*ethernet);

#pragma unroll
	for (int depth = 0; depth < MAX_VLANS; depth++) {
		struct vlan *vlan = at;

		if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
			break;
		if (at + sizeof(*vlan) > end)
			return NOT_IP;
		protocol = vlan->protocol;
		at += sizeof(*vlan);
	}

	// The protocol is byte 9 of an IPv4 header and byte 6 of an IPv6 header.
	if (protocol == bpf_htons(ETH_P_IP) && at + 20 <= end)
		return *(__u8 *)(at + 9);
	if (protocol == bpf_htons(ETH_P_IPV6) && at + 40 <= end)
		return *(__u8 *)(at + 6);
	return NOT_IP;
}

SEC("xdp")
int count_packet(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 protocol = protocol_of(start, end);
	struct traffic *counted = bpf_map_lookup_elem(&traffic, &protocol);

	if (counted) {
		counted->packets += 1;
		counted->bytes += end - start;
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
