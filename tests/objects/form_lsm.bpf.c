// LSM hooks: one that only watches, and one that refuses every third call.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct file {
	unsigned int f_flags;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} flags SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps");

SEC("lsm/file_open")
int BPF_PROG(opened, struct file *file, int ret)
{
	__u32 key = file->f_flags;
	__u64 one = 1, *seen = bpf_map_lookup_elem(&flags, &key);

	if (seen)
		__sync_fetch_and_add(seen, 1);
	else
		bpf_map_update_elem(&flags, &key, &one, BPF_ANY);
	return ret;
}

SEC("lsm/task_getpgid")
int BPF_PROG(asked, struct task_struct *task, int ret)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&calls, &zero);

	if (ret || !count)
		return ret;
	*count += 1;
	// EPERM
	return *count % 3 && task->pid > 0 ? 0 : -1;
}
