// A packet pointer is used after a helper has moved the packet.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int strip(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;
	unsigned char *end = (unsigned char *)(long)ctx->data_end;

	if (data + 64 > end)
		return XDP_PASS;
	if (bpf_xdp_adjust_head(ctx, 14))
		return XDP_PASS;
	return data[0] == 0x45 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
