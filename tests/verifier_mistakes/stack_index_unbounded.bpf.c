// An unbounded index is used in an array on the stack.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct write_args {
	__u64 common;
	__s64 nr;
	__u64 fd, buf, count;
};

SEC("tp/syscalls/sys_enter_write")
int on_write(struct write_args *ctx)
{
	volatile char text[16] = {};

	text[ctx->count] = 1;
	return text[0];
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
