// An unbounded index is used in a map value.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct write_args {
	__u64 common;
	__s64 nr;
	__u64 fd, buf, count;
};

struct counts {
	__u64 slots[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(struct write_args *ctx)
{
	__u32 zero = 0;
	struct counts *value = bpf_map_lookup_elem(&counts, &zero);

	if (!value)
		return 0;
	value->slots[ctx->count] += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
