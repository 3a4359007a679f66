// How large are the writes of this system? A histogram by powers of two of the
// `count` argument of every write(2), kept in the map `hist`.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SLOTS 64

// The kernel's record of a system call's entry (include/trace/events/syscalls.h).
// CO-RE replaces the offsets below by those of the kernel's BTF, if it is known.
struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
} __attribute__((preserve_access_index));

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

// Slot n counts the sizes from 2^n to 2^(n+1)-1; slot 0 also takes size 0.
static __always_inline __u32 slot_of(__u64 size)
{
	__u32 slot = 0;

#pragma unroll
	for (__u32 width = 32; width; width >>= 1) {
		if (size >> width) {
			size >>= width;
			slot += width;
		}
	}
	return slot;
}

SEC("tp/syscalls/sys_enter_write")
int count_write(struct trace_event_raw_sys_enter *ctx)
{
	__u32 slot = slot_of(ctx->args[2]);
	__u64 *count = bpf_map_lookup_elem(&hist, &slot);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
