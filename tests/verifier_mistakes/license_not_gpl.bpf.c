// A GPL-only helper is called from a program under another license.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx);
	return value != 0;
}

char LICENSE[] SEC("license") = "MIT";
