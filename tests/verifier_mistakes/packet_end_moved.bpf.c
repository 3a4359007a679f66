// An offset is added to the packet's end instead of its start.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data;
	char *end = (char *)(long)ctx->data_end;

	asm volatile("%0 += -14" : "+r"(end));
	if (data > end)
		return XDP_PASS;
	return data[0] ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
