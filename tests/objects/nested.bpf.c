// A program that hits another one on its CPU: what the first prints is an event of the
// second. That prints, too, which hits itself: the kernel skips it then, and counts it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 outer_runs, inner_runs;

SEC("tp/syscalls/sys_enter_write")
int outer(void *ctx)
{
	__sync_fetch_and_add(&outer_runs, 1);
	bpf_printk("outer");
	return 1;
}

SEC("raw_tp/bpf_trace_printk")
int inner(void *ctx)
{
	__sync_fetch_and_add(&inner_runs, 1);
	bpf_printk("inner");
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
