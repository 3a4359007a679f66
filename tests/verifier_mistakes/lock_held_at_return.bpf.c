// A return without unlocking.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct counter {
	struct bpf_spin_lock lock;
	__u32 seen;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

SEC("tc")
int count(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct counter *counter = bpf_map_lookup_elem(&counters, &zero);

	if (!counter)
		return 0;
	bpf_spin_lock(&counter->lock);
	if (counter->seen >= 1000)
		return 0;
	counter->seen += 1;
	bpf_spin_unlock(&counter->lock);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
