// A function that is declared here and nowhere defined: the kernel refuses BTF with an
// extern function, and libbpf loads programs without BTF.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int bpflab_elsewhere(int number) __attribute__((weak));

// Verified in the context of its call where there is no BTF that calls it global.
__attribute__((noinline)) int global(__u64 *number)
{
	return *number > 3;
}

SEC("?raw_tp/sys_enter")
int calls_global(void *ctx)
{
	__u64 number = bpf_get_prandom_u32();

	return global(&number);
}

SEC("?raw_tp/sys_enter")
int calls_elsewhere(void *ctx)
{
	return bpflab_elsewhere(1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
