// A helper is called that this kernel does not have.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static long (*bpf_from_the_future)(void) = (void *)9999;

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	return bpf_from_the_future() != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
