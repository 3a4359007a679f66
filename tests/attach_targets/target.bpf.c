// Programs whose functions others replace and trace: global, static, one whose arguments the
// compiler drops, one that changes packets.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct pair {
	int a;
	int b;
};

static __noinline int local(struct __sk_buff *skb)
{
	return skb->len;
}

__noinline int counted(struct __sk_buff *skb)
{
	return skb->len;
}

__noinline int summed(int a, long b)
{
	return a + b;
}

__noinline int paired(struct pair *pair)
{
	return pair ? pair->a : 0;
}

__noinline int pulled(struct __sk_buff *skb)
{
	bpf_skb_pull_data(skb, 0);
	return skb->len;
}

__noinline int unused(struct __sk_buff *skb)
{
	return skb->len + 1;
}

// The compiler passes no second argument, which the type still has.
static __noinline int forgets(struct __sk_buff *skb, int unused)
{
	return skb->mark;
}

SEC("tc")
int filters(struct __sk_buff *skb)
{
	struct pair pair = { .a = 1 };

	return forgets(skb, pair.a) + local(skb) + counted(skb) + summed(1, 2) + paired(&pair) + pulled(skb);
}

SEC("cgroup_skb/egress")
int lets_out(struct __sk_buff *skb)
{
	return counted(skb) > 100;
}

SEC("xdp")
int passes(struct xdp_md *ctx)
{
	return XDP_PASS;
}

__u64 sum;

__noinline int doubled(int n)
{
	return n * 2;
}

__noinline int context(void *ctx __attribute__((btf_decl_tag("arg:ctx"))), int n)
{
	return n + ((__u64 *)ctx)[1];
}

SEC("fentry/bpf_fentry_test1")
int traces(__u64 *ctx)
{
	sum += doubled(ctx[0]);
	return 0;
}

SEC("tp_btf/sys_enter")
int watches(__u64 *ctx)
{
	sum += doubled(ctx[1]) + context(ctx, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
