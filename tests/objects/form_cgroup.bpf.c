// Hooks of a cgroup: packets that its processes send, and the addresses to which they send
// datagrams: those to port 9 go to port 10.
#include "form_packets.h"

SEC("cgroup_skb/egress")
int sent(struct __sk_buff *skb)
{
	count(skb->protocol, skb->len);
	return 1;
}

SEC("cgroup/sendmsg4")
int addressed(struct bpf_sock_addr *ctx)
{
	count(bpf_ntohs(ctx->user_port), ctx->user_ip4);
	if (ctx->user_port == bpf_htons(9))
		ctx->user_port = bpf_htons(10);
	return 1;
}
