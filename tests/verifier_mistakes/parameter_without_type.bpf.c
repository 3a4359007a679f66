// A global function takes the context as void *.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__noinline int length(void *ctx)
{
	struct xdp_md *packet = ctx;

	return packet->data_end - packet->data;
}

SEC("xdp")
int drop_short(struct xdp_md *ctx)
{
	return length(ctx) < 60 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
