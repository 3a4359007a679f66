// A task's storage with a pointer to user memory, which the kernel pins.
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
int counts(__u64 *ctx)
{
	struct settings *settings;
	struct value *value;

	value = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (!value)
		return 0;
	value->calls++;
	settings = value->settings;
	if (!settings)
		return 0;
	settings->used += ctx[1];
	if (settings->used > settings->limit)
		over++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
