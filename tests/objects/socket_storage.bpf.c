// Storage that belongs to sockets and to the cgroup of a program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, struct bpf_cgroup_storage_key);
	__type(value, __u64);
} own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE);
	__type(key, __u64);
	__type(value, __u64);
} per_cpu SEC(".maps");

SEC("cgroup_skb/egress")
int count_bytes(struct __sk_buff *skb)
{
	__u64 *own_bytes = bpf_get_local_storage(&own, 0);
	__u64 *cpu_bytes = bpf_get_local_storage(&per_cpu, 0);
	struct bpf_sock *sk = skb->sk;
	__u64 *bytes;

	__sync_fetch_and_add(own_bytes, skb->len);
	*cpu_bytes += skb->len;
	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 1;
	bytes = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (bytes)
		__sync_fetch_and_add(bytes, skb->len);
	return 1;
}

SEC("cgroup_skb/ingress")
int forget_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk)
		return 0;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 0;
	return bpf_sk_storage_delete(&sockets, sk) == 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
