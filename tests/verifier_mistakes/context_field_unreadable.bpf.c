// A field of the context that this program type does not have.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("socket")
int filter(struct __sk_buff *skb)
{
	return skb->tc_classid == 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
