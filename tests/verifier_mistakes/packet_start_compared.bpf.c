// The pointer itself is compared with the packet's end, not the end of what is read.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int third_byte(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;
	unsigned char *data_end = (unsigned char *)(long)ctx->data_end;
	unsigned char *at = data + (ctx->rx_queue_index & 0x3f);

	if (at >= data_end)
		return XDP_PASS;
	return *at == 7 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
