// Passes events of net:netif_receive_skb whose packet arrived on the device "lo", and
// drops the others: readers of the tracepoint (perf record, a perf buffer) see the
// loopback's packets only. The program's result decides: 0 drops the event, 1 passes
// it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tracepoint.h"

struct trace_event_raw_net_dev_template {
	struct trace_entry ent;
	void *skbaddr;
	unsigned int len;
	__u32 __data_loc_name;
} __attribute__((preserve_access_index));

SEC("tp/net/netif_receive_skb")
int only_lo(struct trace_event_raw_net_dev_template *ctx)
{
	// The offset of the string in the record; the upper 16 bits are its length.
	__u32 offset = ctx->__data_loc_name & 0xffff;
	char name[4] = {};

	// One byte more than "lo" with its NUL: "lo0" must not look like it.
	if (bpf_probe_read_kernel_str(name, sizeof(name), (void *)ctx + offset) != 3)
		return 0;
	return name[0] == 'l' && name[1] == 'o';
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
