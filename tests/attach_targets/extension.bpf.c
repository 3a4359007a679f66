// Extensions, right and wrong, of the functions in target.bpf.c.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct pair {
	int a;
	int b;
};

__u64 packets;

SEC("freplace/counted")
int counts(struct __sk_buff *skb)
{
	packets++;
	return skb->mark;
}

SEC("freplace/filters")
int replaces_program(struct __sk_buff *skb)
{
	return 0;
}

SEC("freplace/counted")
int returns_pointer(struct __sk_buff *skb)
{
	return (long)skb;
}

SEC("freplace/counted")
int reads_past(struct __sk_buff *skb)
{
	return *((volatile int *)skb + 80);
}

SEC("freplace/counted")
int pulls(struct __sk_buff *skb)
{
	bpf_skb_pull_data(skb, 0);
	return 0;
}

SEC("freplace/pulled")
int pulls_too(struct __sk_buff *skb)
{
	bpf_skb_pull_data(skb, 0);
	return 0;
}

SEC("freplace/counted")
int traces_it(struct __sk_buff *skb)
{
	return bpf_get_stackid(skb, 0, 0);
}

SEC("freplace/counted")
long returns_more(struct __sk_buff *skb)
{
	return 0;
}

SEC("freplace/counted")
void returns_nothing(struct __sk_buff *skb)
{
}

SEC("freplace/counted")
int takes_two(struct __sk_buff *skb, int more)
{
	return more;
}

SEC("freplace/counted")
int takes_number(int skb)
{
	return skb;
}

SEC("freplace/counted")
int takes_other(struct xdp_md *ctx)
{
	return 0;
}

SEC("freplace/counted")
int takes_void(void *ctx)
{
	return 0;
}

SEC("freplace/summed")
int sums(int a, long b)
{
	return a - b;
}

SEC("freplace/summed")
int sums_wider(long a, long b)
{
	return a + b;
}

SEC("freplace/paired")
int pairs(struct pair *pair)
{
	if (!pair)
		return 1;
	pair->b = 2;
	return pair->a;
}

SEC("freplace/paired")
int pairs_unchecked(struct pair *pair)
{
	return pair->a;
}

SEC("freplace/local")
int replaces_local(struct __sk_buff *skb)
{
	return 0;
}

SEC("freplace/unused")
int replaces_unused(struct __sk_buff *skb)
{
	return 0;
}

static __noinline int helps(struct __sk_buff *skb)
{
	return skb->len + packets;
}

SEC("freplace/counted")
int calls(struct __sk_buff *skb)
{
	return helps(skb);
}

char LICENSE[] SEC("license") = "GPL";
