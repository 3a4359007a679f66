// A helper is called with a size larger than the buffer on the stack.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	char comm[16];

	bpf_get_current_comm(comm, 64);
	return comm[0] == 'd';
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
