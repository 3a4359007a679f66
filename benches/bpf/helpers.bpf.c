// Helper calls: 100 times the clock and the CPU number.
// flags: -mcpu=v3
#include "bench.h"

const volatile u32 rounds = 100;

SEC("tc")
int helpers(struct __sk_buff *ctx)
{
	u64 last = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id(), in_order = 0;

	for (u32 i = 0; i < rounds; i++) {
		u64 now = bpf_ktime_get_ns();

		in_order += now >= last && bpf_get_smp_processor_id() == cpu;
		last = now;
	}
	return in_order;
}
