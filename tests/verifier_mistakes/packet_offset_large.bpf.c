// The offset into the packet may be above what the verifier follows.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u32 offset;

SEC("xdp")
int byte_at(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;
	unsigned char *data_end = (unsigned char *)(long)ctx->data_end;
	unsigned char *at = data + (offset & 0x1ffff);

	if (at + 2 > data_end)
		return XDP_PASS;
	return *at == 7 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
