// A helper for packets is called on a tracepoint.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	return bpf_redirect(1, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
