// A program whose functions others replace and trace, as libxdp's dispatcher does.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 kept;

__noinline int first(struct xdp_md *ctx)
{
	return XDP_PASS - (ctx->ingress_ifindex == 99);
}

// The compiler passes no second argument, which the type still has.
static __noinline int second(struct xdp_md *ctx, int unused)
{
	return ctx->rx_queue_index + kept;
}

SEC("xdp")
int dispatch(struct xdp_md *ctx)
{
	int action = first(ctx), queue;

	if (action != XDP_PASS)
		return action;
	queue = second(ctx, 1);
	kept += 1;
	return queue < 0 ? XDP_ABORTED : XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
