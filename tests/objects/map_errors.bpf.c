// Map operations that fail: each error number is kept in full, and as what an `int` holds of it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} empty SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(value_size, 8);
} queue SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__uint(value_size, 8);
} stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __s32);
} numbers SEC(".maps");

static __always_inline void keep(__u32 slot, long result)
{
	__s32 *number = bpf_map_lookup_elem(&numbers, &slot);

	if (number)
		*number = result;
	// The whole result decides: before Linux 6.4 its upper half is not the sign's.
	slot += 8;
	number = bpf_map_lookup_elem(&numbers, &slot);
	if (number)
		*number = result < 0 ? -1 : 1;
}

SEC("tp/syscalls/sys_enter_write")
int fails(void *ctx)
{
	__u32 key = 1;
	__u64 value = 2;

	keep(0, bpf_map_update_elem(&empty, &key, &value, BPF_EXIST));
	keep(1, bpf_map_delete_elem(&empty, &key));
	keep(2, bpf_map_pop_elem(&queue, &value));
	keep(3, bpf_map_peek_elem(&stack, &value));
	value = 3;
	bpf_map_push_elem(&stack, &value, 0);
	keep(4, bpf_map_push_elem(&stack, &value, 0));
	keep(5, bpf_map_pop_elem(&stack, &value));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
