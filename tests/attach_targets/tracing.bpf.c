// Tracing programs, right and wrong, of the functions in target.bpf.c.
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

struct sk_buff {
	__u32 len;
} __attribute__((preserve_access_index));

__u64 length;

SEC("fentry/counted")
int enters(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];

	length += skb->len;
	return 0;
}

SEC("fexit/counted")
int leaves(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];

	length += skb->len + (int)ctx[1];
	return 0;
}

SEC("fentry/counted")
int enters_with_result(__u64 *ctx)
{
	return ctx[1];
}

SEC("fexit/counted")
int leaves_past(__u64 *ctx)
{
	return ctx[2];
}

SEC("fentry/counted")
int writes(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];

	*(volatile __u32 *)&skb->len = 1;
	return 0;
}

SEC("fentry/summed")
int takes_numbers(__u64 *ctx)
{
	length = ctx[0] + ctx[1];
	return 0;
}

SEC("fexit/paired")
int takes_pair(__u64 *ctx)
{
	return ctx[0] != 0;
}

SEC("fexit/paired")
int takes_result_only(__u64 *ctx)
{
	length = ctx[1];
	return 0;
}

SEC("fexit/local")
int leaves_static(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];

	length = skb->len;
	return 0;
}

SEC("fentry/forgets")
int enters_untyped(__u64 *ctx)
{
	length = ctx[0] + ctx[4];
	return 0;
}

SEC("fentry/forgets")
int enters_untyped_past(__u64 *ctx)
{
	length = ctx[5];
	return 0;
}

SEC("fexit/forgets")
int leaves_untyped(__u64 *ctx)
{
	length = ctx[5];
	return 0;
}

SEC("fexit/forgets")
int leaves_untyped_past(__u64 *ctx)
{
	length = ctx[6];
	return 0;
}

SEC("fexit/filters")
int leaves_main(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];

	length = skb->len + (int)ctx[1];
	return 0;
}

SEC("fexit/filters")
int returns_one(__u64 *ctx)
{
	return 1;
}

SEC("fentry/unused")
int enters_unused(__u64 *ctx)
{
	return 0;
}

SEC("fentry.s/counted")
int sleeps(__u64 *ctx)
{
	return 0;
}

SEC("fmod_ret/counted")
int modifies(__u64 *ctx)
{
	return 0;
}

SEC("fexit/counted")
int gets_result(__u64 *ctx)
{
	__u64 result = 0;

	bpf_get_func_ret(ctx, &result);
	length = result + bpf_get_func_arg_cnt(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
