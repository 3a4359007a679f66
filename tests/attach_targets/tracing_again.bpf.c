// A tracing program that traces a tracing program, and one that traces that one.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("fentry/traces")
int traces_traces(__u64 *ctx)
{
	return 0;
}

SEC("fentry/traces_traces")
int traces_again(__u64 *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
