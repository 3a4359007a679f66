// Iterators: over tasks, and over the kernel's BPF maps. They print, and they count.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct seq_file;

struct bpf_iter_meta {
	__bpf_md_ptr(struct seq_file *, seq);
	__u64 session_id;
	__u64 seq_num;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

struct bpf_map {
	unsigned int id;
	unsigned int max_entries;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	__bpf_md_ptr(struct bpf_iter_meta *, meta);
	__bpf_md_ptr(struct task_struct *, task);
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_map {
	__bpf_md_ptr(struct bpf_iter_meta *, meta);
	__bpf_md_ptr(struct bpf_map *, map);
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} sums SEC(".maps");

static __always_inline void add(__u32 slot, __u64 value)
{
	__u64 *sum = bpf_map_lookup_elem(&sums, &slot);

	if (sum)
		__sync_fetch_and_add(sum, value);
}

SEC("iter/task")
int tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;

	if (!task) {
		BPF_SEQ_PRINTF(seq, "%d tasks\n", ctx->meta->seq_num);
		return 0;
	}
	add(0, 1);
	add(1, task->pid == task->tgid);
	BPF_SEQ_PRINTF(seq, "%d %d\n", task->pid, task->tgid);
	return 0;
}

SEC("iter/bpf_map")
int maps(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;

	if (map) {
		add(2, 1);
		add(3, map->max_entries);
	}
	return 0;
}
