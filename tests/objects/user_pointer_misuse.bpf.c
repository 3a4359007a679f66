// Wrong uses of a pointer to user memory in a task's storage: past its end, without a null check,
// stored by a program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __uptr __attribute__((btf_type_tag("uptr")))

struct settings {
	__u64 limit;
	__u64 used;
};

struct value {
	struct settings __uptr *settings;
	__u64 calls;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct value);
} tasks SEC(".maps");

__u64 over;
// Without a variable of the type clang leaves it out of the BTF.
struct settings defaults;

SEC("tp_btf/sys_enter")
int reads_past(__u64 *ctx)
{
	struct value *value;

	value = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (!value || !value->settings)
		return 0;
	over += *((volatile __u64 *)value->settings + 2);
	return 0;
}

SEC("tp_btf/sys_enter")
int forgets_null(__u64 *ctx)
{
	struct value *value;

	value = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (value)
		over += value->settings->limit;
	return 0;
}

SEC("tp_btf/sys_enter")
int stores(__u64 *ctx)
{
	struct value *value;

	value = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (value)
		value->settings = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
