// Lets those firings of net:netif_receive_skb through whose packet came in by the
// device "lo", and drops the others: who records the tracepoint (perf record, a perf
// buffer) sees the loopback's packets only. A program's result decides: 0 drops the
// event, 1 lets it pass.
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
	// Where the string stands in the record: its offset, and its length above that.
	__u32 offset = ctx->__data_loc_name & 0xffff;
	char name[4] = {};

	// One byte more than "lo" with its NUL: "lo0" must not look like it.
	if (bpf_probe_read_kernel_str(name, sizeof(name), (void *)ctx + offset) != 3)
		return 0;
	return name[0] == 'l' && name[1] == 'o';
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
