// How long does each process wait in vfs_read? A kprobe at the function's entry stores
// the time, a kretprobe at its return computes the difference: a histogram of
// microseconds for each process.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "slots.h"

// Threads in the function, with their entry times: a thread is in it at most once.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} inside SEC(".maps");

struct reads {
	__u64 failed;
	__u64 bytes;
	__u32 slots[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct reads);
} processes SEC(".maps");

SEC("kprobe/vfs_read")
int BPF_KPROBE(enter)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&inside, &thread, &now, BPF_ANY);
	return 0;
}

// The totals of a process, initially zero.
static __always_inline struct reads *reads_of(__u32 process)
{
	static const struct reads zero;
	struct reads *reads = bpf_map_lookup_elem(&processes, &process);

	if (reads)
		return reads;
	bpf_map_update_elem(&processes, &process, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&processes, &process);
}

SEC("kretprobe/vfs_read")
int BPF_KRETPROBE(leave, long returned)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 thread = id, slot;
	__u64 *since = bpf_map_lookup_elem(&inside, &thread);
	struct reads *reads;

	// The thread entered the function before the probe was attached.
	if (!since)
		return 0;
	slot = slot_of((bpf_ktime_get_ns() - *since) / 1000);
	bpf_map_delete_elem(&inside, &thread);

	reads = reads_of(id >> 32);
	if (!reads)
		return 0;
	// The last slot also counts everything longer.
	if (slot >= 32)
		slot = 31;
	__sync_fetch_and_add(&reads->slots[slot], 1);
	if (returned < 0)
		__sync_fetch_and_add(&reads->failed, 1);
	else
		__sync_fetch_and_add(&reads->bytes, returned);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
