// CO-RE relocations of bitfields, by probe read and by direct access. `struct flags`
// is in no kernel: only against the object's own BTF is its part alive.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct flags {
	unsigned int low : 3;
	unsigned int middle : 13;
	int negative : 5;
	unsigned long long wide : 40;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int sched_reset_on_fork : 1;
	unsigned int in_execve : 1;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flags);
} values SEC(".maps");

__u64 low, middle, wide, in_execve;
__s64 negative;

SEC("raw_tp/sys_enter")
int read_bitfields(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 zero = 0;
	struct flags *flags = bpf_map_lookup_elem(&values, &zero);

	in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	if (!bpf_core_type_exists(struct flags) || !flags)
		return 1;
	low = BPF_CORE_READ_BITFIELD(flags, low);
	middle = BPF_CORE_READ_BITFIELD(flags, middle);
	negative = BPF_CORE_READ_BITFIELD(flags, negative);
	wide = BPF_CORE_READ_BITFIELD_PROBED(flags, wide);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
