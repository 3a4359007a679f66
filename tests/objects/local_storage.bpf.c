// Storage that belongs to tasks, cgroups, sockets and the cgroup of a program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define BPF_MAP_TYPE_CGRP_STORAGE_ 32

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));
struct cgroup;

struct visits {
	__u64 count;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct visits);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE_);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} cgroups SEC(".maps");

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

// How often a task was switched to, beginning with 100.
SEC("tp_btf/sched_switch")
int BPF_PROG(count_switches, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct visits initial = { .count = 100 };
	struct visits *visits;

	visits = bpf_task_storage_get(&tasks, next, &initial, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!visits)
		return 1;
	visits->count++;
	visits->last = prev->pid;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(forget, struct task_struct *task)
{
	return bpf_task_storage_delete(&tasks, task);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(mark_cgroup, struct cgroup *cgroup, const char *path)
{
	__u64 *mark = bpf_cgrp_storage_get(&cgroups, cgroup, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (mark)
		*mark = 42;
	return 0;
}

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

char LICENSE[] SEC("license") = "Dual MIT/GPL";
