// A field of the context is read at a variable index.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct enter_args {
	__u64 common;
	__s64 nr;
	__u64 args[6];
};

SEC("tp/raw_syscalls/sys_enter")
int on_enter(struct enter_args *ctx)
{
	__u32 which = bpf_get_prandom_u32() % 6;

	return ctx->args[which] != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
