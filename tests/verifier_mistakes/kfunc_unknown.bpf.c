// A kfunc that does not exist, declared weak and called without a check.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int bpf_no_such_function(int number) __ksym __weak;

SEC("tc")
int classify(struct __sk_buff *skb)
{
	return bpf_no_such_function(1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
