// The packet is read before its length is checked.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int count_ip(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;

	if (data[12] == 0x08 && data[13] == 0x00)
		return XDP_PASS;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
