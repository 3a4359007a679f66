// A program returns a value that its type does not allow.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("cgroup/sock_create")
int allow(struct bpf_sock *sock)
{
	return sock->family == 2 ? 5 : 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
