// A loop around bpf_loop(): the kernel notes no back edge where a callback comes back to
// its call, and so explores fewer rounds than of other loops.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 rounds;

static int count(__u32 index, void *unused)
{
	if (index > 1)
		rounds += index;
	return 0;
}

SEC("tc")
int callback_in_loop(struct __sk_buff *skb)
{
	int i;

#pragma clang loop unroll(disable)
	for (i = 0; i < 3; i++) {
		bpf_loop(2, count, 0, 0);
		asm volatile("" : "+r"(i));
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
