// tc: counts packets by port, marks them, and reads the port by a helper, too.
#include <stddef.h>
#include "form_packets.h"

#define TC_ACT_UNSPEC -1
#define TC_ACT_SHOT 2

SEC("tcx/ingress")
int mark_some(struct __sk_buff *skb)
{
	struct udphdr *udp = udp_of((void *)(long)skb->data, (void *)(long)skb->data_end);
	__u16 again = 0;

	if (!udp) {
		count(0, skb->len);
		return TC_ACT_UNSPEC;
	}
	bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + sizeof(struct iphdr) +
			   offsetof(struct udphdr, dest), &again, sizeof(again));
	skb->mark = bpf_ntohs(again);
	return count(skb->mark, skb->len) % 3 == 2 ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
