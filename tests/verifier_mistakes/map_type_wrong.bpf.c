// A ring buffer helper is called with an array.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} hist SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	__u64 *record = bpf_ringbuf_reserve(&hist, sizeof(*record), 0);

	if (record)
		bpf_ringbuf_discard(record, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
