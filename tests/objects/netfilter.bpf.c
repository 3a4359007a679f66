// A netfilter hook: what it reads of its state and of the packet, through typed pointers.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct nf_hook_state {
	unsigned char hook;
	unsigned char pf;
} __attribute__((preserve_access_index));

struct sk_buff {
	unsigned int len;
} __attribute__((preserve_access_index));

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
} __attribute__((preserve_access_index));

__u32 hook, family, length;

SEC("netfilter")
int on_packet(struct bpf_nf_ctx *ctx)
{
	hook = ctx->state->hook;
	family = ctx->state->pf;
	length = ctx->skb->len;
	return length < 1000;
}

char LICENSE[] SEC("license") = "GPL";
