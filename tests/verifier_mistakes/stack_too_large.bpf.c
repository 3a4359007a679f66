// Two functions whose frames do not fit on the stack together.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static __attribute__((noinline)) int inner(int seed)
{
	volatile char text[300];

	text[seed & 255] = seed;
	return text[1];
}

SEC("tc")
int classify(struct __sk_buff *skb)
{
	volatile char text[300];
	int seed = skb->len;

	text[seed & 255] = 1;
	return inner(seed) + text[2];
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
