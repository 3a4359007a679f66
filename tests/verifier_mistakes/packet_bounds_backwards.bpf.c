// The comparison with the packet's end leaves where the packet is long enough.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int count_ip(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;
	unsigned char *data_end = (unsigned char *)(long)ctx->data_end;

	if (data + 14 <= data_end)
		return XDP_PASS;
	return data[12] == 0x08 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
