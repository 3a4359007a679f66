// A loop with a bound too large to be explored.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 sum;

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	for (__u64 i = 0; i < 10000000; i++)
		sum += i ^ bpf_get_smp_processor_id();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
