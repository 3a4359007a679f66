// A loop with too many iterations: the verifier gives up somewhere in its body.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 sum, last;

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	for (__u64 i = 0; i < 10000000; i++) {
		__u64 now = bpf_ktime_get_ns();

		sum += i ^ now;
		sum *= 3;
		sum ^= last;
		last = now;
		sum -= bpf_get_smp_processor_id();
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
