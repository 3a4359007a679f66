// An LSM program with the functions that extension_tracing.bpf.c extends.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int sum;

__noinline int doubled(int n)
{
	return n * 2;
}

__noinline int context(void *ctx __attribute__((btf_decl_tag("arg:ctx"))), int n)
{
	return n + (ctx != 0);
}

SEC("lsm/file_open")
int watches(__u64 *ctx)
{
	sum += doubled(1) + context(ctx, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
