// Programs whose functions others replace: global, static, one that sleeps, one that changes
// packets.
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

SEC("tc")
int filters(struct __sk_buff *skb)
{
	struct pair pair = { .a = 1 };

	return local(skb) + counted(skb) + summed(1, 2) + paired(&pair) + pulled(skb);
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

SEC("fentry/bpf_fentry_test1")
int traces(__u64 *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
