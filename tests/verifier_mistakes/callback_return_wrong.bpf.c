// A callback of bpf_loop() that returns a count: only 0 (continue) and 1 (stop) are allowed.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 sum;

static long add(__u64 index, void *ctx)
{
	sum += index;
	return 2;
}

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	bpf_loop(100, add, 0, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
