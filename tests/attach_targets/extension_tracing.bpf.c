// Extensions of functions of tracing programs, in target.bpf.c.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("freplace/doubled")
int doubles(int n)
{
	return n + n;
}

SEC("freplace/doubled")
int asks_for_task(int n)
{
	return n + (bpf_get_current_task_btf() != 0);
}

SEC("freplace/context")
int reads_context(__u64 *ctx __attribute__((btf_decl_tag("arg:ctx"))), int n)
{
	return ctx[0];
}

SEC("freplace/doubled")
int takes_other_number(long n)
{
	return n;
}

SEC("freplace/watches")
int replaces_main(__u64 *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
