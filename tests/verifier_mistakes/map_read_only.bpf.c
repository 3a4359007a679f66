// Global data that was declared constant is written.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 limit = 16;

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	*(volatile __u32 *)&limit = 17;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
