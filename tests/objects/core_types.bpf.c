// CO-RE relocations of types and enumerators: existence, size, match, the local and
// the target's type id, values of 32 and 64 bits.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#ifndef bpf_core_type_matches
#define bpf_core_type_matches(type) \
	__builtin_preserve_type_info(*(typeof(type) *)0, 2 /* BPF_TYPE_MATCHES */)
#endif

struct list_head {
	struct list_head *next, *prev;
} __attribute__((preserve_access_index));

struct bpflab_no_such_type {
	int x;
};

// The names count, the values are the target's: they are wrong on purpose.
enum bpf_map_type___local {
	BPF_MAP_TYPE_HASH___local = 77,
	BPF_MAP_TYPE_BPFLAB___local = 78,
};

// In no kernel: read only where it exists.
enum wide { WIDE_ONE = 1, WIDE_MANY = 0x123456789abcull };

__u32 list_size, list_exists, list_matches, no_type, hash_value, no_value;
__u64 wide_value;
__u64 local_id, target_id;

SEC("raw_tp/sys_enter")
int read_types(void *ctx)
{
	list_exists = bpf_core_type_exists(struct list_head);
	list_size = bpf_core_type_size(struct list_head);
	list_matches = bpf_core_type_matches(struct list_head);
	no_type = bpf_core_type_exists(struct bpflab_no_such_type);
	local_id = bpf_core_type_id_local(struct list_head);
	target_id = bpf_core_type_id_kernel(struct list_head);
	hash_value = bpf_core_enum_value(enum bpf_map_type___local, BPF_MAP_TYPE_HASH___local);
	no_value = bpf_core_enum_value_exists(enum bpf_map_type___local,
					      BPF_MAP_TYPE_BPFLAB___local);
	if (bpf_core_enum_value_exists(enum wide, WIDE_MANY))
		wide_value = bpf_core_enum_value(enum wide, WIDE_MANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
