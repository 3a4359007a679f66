// Only a part of what is read is compared with the packet's end.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct option {
	__u32 value, more;
};

SEC("xdp")
int first_option(struct xdp_md *ctx)
{
	unsigned char *data = (unsigned char *)(long)ctx->data;
	unsigned char *data_end = (unsigned char *)(long)ctx->data_end;
	struct option *option = (struct option *)(data + 54);

	if ((unsigned char *)option + 2 > data_end)
		return XDP_PASS;
	return option->value == 0 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
