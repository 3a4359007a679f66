// Objects of a program's own that values of maps own.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __kptr __attribute__((btf_type_tag("kptr")))

struct owned_item {
	__u64 value;
};

struct owner {
	__u64 updates;
	struct owned_item __kptr *node;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct owner);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct owner);
} one SEC(".maps");

extern void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;

#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(__builtin_btf_type_id(*(type *)0, 0), 0))

__u32 key;
__u64 address, taken;

static int put(struct owner *owner, __u64 value)
{
	struct owned_item *node, *old;

	if (!owner)
		return 1;
	node = bpf_obj_new(struct owned_item);
	if (!node)
		return 2;
	node->value = value;
	address = (__u64)node;
	owner->updates++;
	old = bpf_kptr_xchg(&owner->node, node);
	if (old) {
		taken = old->value;
		bpf_obj_drop_impl(old, 0);
	}
	return 0;
}

SEC("syscall")
int put_in_hash(__u64 *value)
{
	return put(bpf_map_lookup_elem(&owners, &key), *value);
}

SEC("syscall")
int put_in_array(__u64 *value)
{
	return put(bpf_map_lookup_elem(&one, &key), *value);
}

SEC("syscall")
int delete(void *ctx)
{
	return bpf_map_delete_elem(&owners, &key);
}

SEC("syscall")
int replace(void *ctx)
{
	struct owner owner = { .updates = 100 };

	bpf_map_update_elem(&one, &key, &owner, BPF_ANY);
	return bpf_map_update_elem(&owners, &key, &owner, BPF_ANY);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
