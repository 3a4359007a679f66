// A slice of a packet is used after a helper has moved the packet.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include <linux/pkt_cls.h>

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags, struct bpf_dynptr *ptr__uninit) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, __u32 offset, void *buffer,
			      __u32 buffer__szk) __ksym;

SEC("tc")
int classify(struct __sk_buff *skb)
{
	unsigned char buffer[14], *header;
	struct bpf_dynptr packet;

	if (bpf_dynptr_from_skb(skb, 0, &packet))
		return TC_ACT_OK;
	header = bpf_dynptr_slice(&packet, 0, buffer, sizeof(buffer));
	if (!header)
		return TC_ACT_OK;
	if (bpf_skb_pull_data(skb, 64))
		return TC_ACT_OK;
	return header[12] == 8 ? TC_ACT_OK : TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
