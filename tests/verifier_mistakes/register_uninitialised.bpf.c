// An uninitialised register is read.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	long value;

	asm volatile("%0 = r8" : "=r"(value));
	return value != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
