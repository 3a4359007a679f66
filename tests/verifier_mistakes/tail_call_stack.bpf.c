// A tail call from a function whose caller uses much stack.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

static __attribute__((noinline)) int go_on(void *ctx)
{
	bpf_tail_call(ctx, &next, 0);
	return 0;
}

SEC("tc")
int classify(struct __sk_buff *skb)
{
	volatile char text[300];

	text[skb->len & 255] = 1;
	return go_on(skb) + text[2];
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
