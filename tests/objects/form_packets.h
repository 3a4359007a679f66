// What the packets of a device are: by protocol of the network, by port of UDP.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct sums {
	__u64 packets;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct sums);
} ports SEC(".maps");

static __always_inline __u64 count(__u32 port, __u64 bytes)
{
	struct sums new = {}, *sums = bpf_map_lookup_elem(&ports, &port);

	if (!sums) {
		bpf_map_update_elem(&ports, &port, &new, BPF_NOEXIST);
		sums = bpf_map_lookup_elem(&ports, &port);
		if (!sums)
			return 0;
	}
	__sync_fetch_and_add(&sums->bytes, bytes);
	return __sync_fetch_and_add(&sums->packets, 1);
}

// The header of UDP over IPv4 without options; null for other packets.
static __always_inline struct udphdr *udp_of(void *data, void *end)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) ||
	    ip->protocol != IPPROTO_UDP || ip->ihl != 5)
		return 0;
	return udp;
}
