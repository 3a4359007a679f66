// The three kinds of tracepoints: raw, with BTF, and through perf.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct pt_regs {
	unsigned long orig_ax;
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

SEC("raw_tp/sys_enter")
int raw(struct bpf_raw_tracepoint_args *ctx)
{
	add(0, ctx->args[1]);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(typed, struct pt_regs *regs, long returned)
{
	add(1, regs->orig_ax);
	add(2, returned);
	return 0;
}

struct write {
	__u64 common;
	long number;
	__u64 fd;
	__u64 buf;
	__u64 count;
};

SEC("tp/syscalls/sys_enter_write")
int record(struct write *ctx)
{
	add(3, ctx->count);
	return 0;
}
