// An access to the stack that is not aligned to its size.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u64 now = bpf_ktime_get_ns();

	asm volatile("*(u64 *)(r10 - 12) = %0" : : "r"(now));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
