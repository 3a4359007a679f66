// The histogram of write_hist without a tracepoint, by a kprobe on vfs_write. Every write
// to a file goes through this function, whichever system call it came from. Its third
// argument is the size.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "slots.h"

struct file;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

SEC("kprobe/vfs_write")
int BPF_KPROBE(count_write, struct file *file, const char *buffer, unsigned long size)
{
	__u32 slot = slot_of(size);
	__u64 *count = bpf_map_lookup_elem(&hist, &slot);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
