// Global variables of every section that libbpf turns into a map.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct limits {
	__u32 low;
	__u64 high;
};

const volatile __u32 wanted_pid = 0;                       // .rodata, set before loading
const volatile struct limits limits = { .low = 3, .high = 1ull << 40 };
const char greeting[] SEC(".rodata.text") = "hello";       // a section of its own
__u64 seen;                                                // .bss
__u32 by_cpu[4];
static volatile __s16 offset = -7;                         // .data, static
__u64 total = 100;                                         // .data
__u8 tagged[3] SEC(".data.tagged") = { 1, 2, 3 };

SEC("raw_tp/sys_enter")
int touch_globals(void *ctx)
{
	if (wanted_pid && bpf_get_current_pid_tgid() >> 32 != wanted_pid)
		return 1;
	seen++;
	by_cpu[bpf_get_smp_processor_id() & 3] += limits.low;
	total += offset + limits.high;
	tagged[1] += greeting[seen & 3];
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
