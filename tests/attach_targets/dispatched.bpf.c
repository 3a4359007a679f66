// Programs for the functions in dispatcher.bpf.c: extensions, and programs that trace.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

struct xdp_rxq_info {
	struct net_device *dev;
	__u32 queue_index;
} __attribute__((preserve_access_index));

struct xdp_buff {
	struct xdp_rxq_info *rxq;
} __attribute__((preserve_access_index));

__u64 drops_seen, entered, left, result, queue, arguments, cookie, main_result;

static __noinline int action(void)
{
	return XDP_DROP;
}

SEC("freplace/first")
int drops(struct xdp_md *ctx)
{
	drops_seen += ctx->data_end - ctx->data;
	return action();
}

SEC("freplace/dispatch")
int replaces_all(struct xdp_md *ctx)
{
	return bpf_get_smp_processor_id() ? XDP_ABORTED : XDP_TX;
}

extern void bpf_throw(__u64 cookie) __ksym;

__u64 caught;

static __noinline int throw_for_port(struct xdp_md *ctx)
{
	if (ctx->ingress_ifindex == 99)
		bpf_throw(XDP_DROP);
	return XDP_PASS;
}

SEC("freplace/first")
int throws(struct xdp_md *ctx)
{
	return throw_for_port(ctx);
}

// Global, and named by a tag: the exception's end.
__noinline int give_back(__u64 cookie)
{
	caught += cookie;
	return XDP_PASS;
}

SEC("freplace/first")
__attribute__((btf_decl_tag("exception_callback:give_back")))
int throws_and_catches(struct xdp_md *ctx)
{
	return throw_for_port(ctx);
}

SEC("fentry/first")
int enters(__u64 *ctx)
{
	struct xdp_buff *xdp = (void *)ctx[0];

	entered++;
	queue = xdp->rxq->queue_index;
	arguments = bpf_get_func_arg_cnt(ctx);
	cookie = bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("fexit/first")
int leaves(__u64 *ctx)
{
	left++;
	bpf_get_func_ret(ctx, &result);
	bpf_printk("first returned %d", (int)ctx[1]);
	return 0;
}

SEC("fentry/second")
int enters_second(__u64 *ctx)
{
	arguments = bpf_get_func_arg_cnt(ctx);
	return 0;
}

SEC("fexit/dispatch")
int leaves_main(__u64 *ctx)
{
	main_result = ctx[1];
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
