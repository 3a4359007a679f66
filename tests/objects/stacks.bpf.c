// Stacks: kept in maps by their hash, copied out, of the current task and of another.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, 4);
	__uint(value_size, 4 * sizeof(__u64));
	__uint(max_entries, 64);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, 4);
	__uint(value_size, 4 * sizeof(struct bpf_stack_build_id));
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_STACK_BUILD_ID);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 64);
} counts SEC(".maps");

struct buffer {
	__u64 flags;
	__u32 size, pad;
	__s64 said;
	char bytes[128];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct buffer);
	__uint(max_entries, 1);
} buffers SEC(".maps");

static __always_inline struct buffer *buffer(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&buffers, &zero);
}

// A profiler: how often each stack was seen.
SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct buffer *asked = buffer();
	__u64 one = 1, *count;
	__u32 id;
	long said;

	if (!asked)
		return 0;
	said = bpf_get_stackid(ctx, &stacks, asked->flags);
	asked->said = said;
	if (said < 0)
		return 0;
	id = said;
	count = bpf_map_lookup_elem(&counts, &id);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&counts, &id, &one, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_enter")
int stack_of_files(void *ctx)
{
	struct buffer *asked = buffer();

	if (asked)
		asked->said = bpf_get_stackid(ctx, &files, asked->flags);
	return 0;
}

SEC("raw_tp/sys_enter")
int copy(void *ctx)
{
	struct buffer *asked = buffer();

	if (asked && asked->size <= sizeof(asked->bytes))
		asked->said = bpf_get_stack(ctx, asked->bytes, asked->size, asked->flags);
	return 0;
}

struct task_struct;

SEC("tp_btf/sched_wakeup")
int copy_of_task(unsigned long long *ctx)
{
	struct buffer *asked = buffer();
	struct task_struct *task = (void *)ctx[0];

	if (asked && asked->size <= sizeof(asked->bytes))
		asked->said = bpf_get_task_stack(task, asked->bytes, asked->size, asked->flags);
	return 0;
}

// The innermost functions by name.
SEC("raw_tp/sys_enter")
int where(void *ctx)
{
	__u64 frames[2] = {};

	if (bpf_get_stack(ctx, frames, sizeof(frames), 0) > 0)
		bpf_printk("%pS called by %pB in %ps", (void *)frames[0], (void *)frames[1],
			   (void *)frames[0]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
