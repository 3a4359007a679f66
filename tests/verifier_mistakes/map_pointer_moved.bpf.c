// A map is used as if it were its first element.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

struct write_args {
	__u64 common;
	__s64 nr;
	__u64 fd, buf, count;
};

SEC("tp/syscalls/sys_enter_write")
int on_write(struct write_args *ctx)
{
	__u64 *slots = (__u64 *)&hist;

	slots[ctx->count & 63] = 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
