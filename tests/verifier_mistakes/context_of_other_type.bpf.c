// A tracepoint's program reads the fields that a packet's program has.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/skb/consume_skb")
int first_byte(struct __sk_buff *skb)
{
	unsigned char *data = (unsigned char *)(long)skb->data;

	return *data == 7;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
