// How often are kernel functions called? One program for all functions that it is
// attached to; the function's address tells them apart.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "count.h"
#include "registers.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} calls SEC(".maps");

// Calls of functions that did not fit the map.
__u64 uncounted;

SEC("kprobe")
int count_call(struct pt_regs *ctx)
{
	__u64 function = bpf_get_func_ip(ctx);

	if (count(&calls, &function))
		__sync_fetch_and_add(&uncounted, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
