// A queue and a stack of the sizes of writes: the queue gives up the oldest where it is full,
// the stack what came last, now and then.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 8);
	__type(value, __u64);
} oldest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 8);
	__type(value, __u64);
} latest SEC(".maps");

struct write {
	__u64 common, number, fd, buffer, count;
};

SEC("tp/syscalls/sys_enter_write")
int keep_sizes(struct write *write)
{
	__u64 size = write->count, taken = 0;

	bpf_map_push_elem(&oldest, &size, BPF_EXIST);
	if (bpf_map_push_elem(&latest, &size, BPF_ANY))
		bpf_map_pop_elem(&latest, &taken);
	bpf_map_peek_elem(&oldest, &taken);
	return taken & 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
