// A division by a constant that is zero.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	long value = bpf_ktime_get_ns();

	asm volatile("%0 /= 0" : "+r"(value));
	return value != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
