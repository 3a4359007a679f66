// Maps as they were declared before BTF: records in the section `maps`.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct bpf_map_def {
	unsigned int type;
	unsigned int key_size;
	unsigned int value_size;
	unsigned int max_entries;
	unsigned int map_flags;
};

struct bpf_map_def SEC("maps") old_hash = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u64),
	.max_entries = 16,
	.map_flags = BPF_F_NO_PREALLOC,
};

struct bpf_map_def SEC("maps") old_array = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u64),
	.max_entries = 2,
};

SEC("tracepoint/syscalls/sys_enter_write")
int count_old(void *ctx)
{
	__u32 key = 1;
	__u64 one = 1, *count = bpf_map_lookup_elem(&old_array, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
	return bpf_map_update_elem(&old_hash, &key, &one, BPF_NOEXIST);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
