// Arithmetic on a pointer whose result is not a pointer.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	return (unsigned long)ctx / 3;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
