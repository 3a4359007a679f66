// Sections that no loader knows, beside one that all know: a program of no known
// type, and data that is no map.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("bpflab/unheard_of")
int of_no_type(void *ctx)
{
	return 1;
}

SEC("raw_tp/sys_enter")
int known(void *ctx)
{
	return 0;
}

int note SEC(".bpflab.note") = 5;

char LICENSE[] SEC("license") = "Dual MIT/GPL";
