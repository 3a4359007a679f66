// Lines and branches in each state of coverage: covered, missed, and dead, since a constant
// rules them out. One program calls a function, the other one is never run.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile int debug = 0;
__u64 large, small, other;

static __noinline int sort(__u64 size)
{
	if (size >= 4096) {
		__sync_fetch_and_add(&large, 1);
		return 1;
	}
	__sync_fetch_and_add(&small, 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 size = ctx->args[1];

	if (debug)
		bpf_printk("size %llu", size);
	if (size == 7)
		__sync_fetch_and_add(&other, 1);
	return sort(size);
}

SEC("raw_tp/sys_exit")
int on_exit(void *ctx)
{
	return debug ? 2 : sort(0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
