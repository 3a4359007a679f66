// fentry and fexit of one function: its arguments, a field behind a pointer, what it
// returned. `fexit` also asks the helpers for the same numbers.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct file {
	unsigned int f_flags;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} flags SEC(".maps");

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

SEC("fentry/vfs_write")
int BPF_PROG(entered, struct file *file, const char *buf, __u64 count)
{
	__u32 key = file->f_flags;
	__u64 one = 1, *seen = bpf_map_lookup_elem(&flags, &key);

	if (seen)
		__sync_fetch_and_add(seen, 1);
	else
		bpf_map_update_elem(&flags, &key, &one, BPF_ANY);
	add(0, count);
	return 0;
}

SEC("fexit/vfs_write")
int BPF_PROG(left, struct file *file, const char *buf, __u64 count, void *pos, long returned)
{
	__u64 asked = 0, given = 0;

	bpf_get_func_arg(ctx, 2, &asked);
	bpf_get_func_ret(ctx, &given);
	add(1, returned);
	add(2, asked + given);
	add(3, bpf_get_func_arg_cnt(ctx));
	return 0;
}
