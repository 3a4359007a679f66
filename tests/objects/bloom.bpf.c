// A bloom filter of times: what was not pushed it takes for a member now and then, and each
// kernel draws by lot when. The others are counted.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(max_entries, 64);
	__type(value, __u64);
	__uint(map_extra, 1);
} times SEC(".maps");

__u64 members, others;

SEC("tp/syscalls/sys_enter_write")
int is_member(void *ctx)
{
	__u64 now = bpf_ktime_get_ns(), other = now + 1;

	bpf_map_push_elem(&times, &now, BPF_ANY);
	if (bpf_map_peek_elem(&times, &other))
		__sync_fetch_and_add(&others, 1);
	else
		__sync_fetch_and_add(&members, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
