// Two locks are taken at the same time.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct account {
	struct bpf_spin_lock lock;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct account);
} accounts SEC(".maps");

SEC("tc")
int move_bytes(struct __sk_buff *skb)
{
	__u32 first = 0, second = 1;
	struct account *from = bpf_map_lookup_elem(&accounts, &first);
	struct account *to = bpf_map_lookup_elem(&accounts, &second);

	if (!from || !to)
		return 0;
	bpf_spin_lock(&from->lock);
	bpf_spin_lock(&to->lock);
	to->bytes += from->bytes;
	bpf_spin_unlock(&to->lock);
	bpf_spin_unlock(&from->lock);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
