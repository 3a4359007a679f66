// A callback throws an exception.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern void bpf_throw(__u64 cookie) __ksym;

static long check(__u32 index, void *context)
{
	if (index == 3)
		bpf_throw(1);
	return 0;
}

SEC("tc")
int count(struct __sk_buff *skb)
{
	bpf_loop(10, check, (void *)0, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
