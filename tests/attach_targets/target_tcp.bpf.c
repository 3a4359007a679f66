// A congestion control's member with the functions that extension_tracing.bpf.c extends.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct sock;
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
};

int sum;

__noinline int doubled(int n)
{
	return n * 2;
}

__noinline int context(void *ctx __attribute__((btf_decl_tag("arg:ctx"))), int n)
{
	return n + (ctx != 0);
}

SEC("struct_ops")
__u32 watches(__u64 *ctx)
{
	sum += doubled(1) + context(ctx, 1);
	return 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops congestion = {
	.ssthresh = (void *)watches,
};

char LICENSE[] SEC("license") = "GPL";
