// XDP: counts packets by port, clears the checksum of those to port 9, and drops every third.
#include "form_packets.h"

SEC("xdp")
int drop_some(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = udp_of(data, end);

	if (!udp) {
		count(0, end - data);
		return XDP_PASS;
	}
	udp->check = 0;
	return count(bpf_ntohs(udp->dest), end - data) % 3 == 2 ? XDP_DROP : XDP_PASS;
}
