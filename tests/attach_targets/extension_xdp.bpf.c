// Extensions of the other programs in target.bpf.c, each by the rules of its target's type.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("freplace/passes")
int drops(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("freplace/passes")
int adjusts(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 4);
}

SEC("freplace/passes")
int reads_packet(struct xdp_md *ctx)
{
	char *data = (void *)(long)ctx->data;

	return data + 1 > (char *)(long)ctx->data_end ? XDP_DROP : *data;
}

char LICENSE[] SEC("license") = "GPL";
