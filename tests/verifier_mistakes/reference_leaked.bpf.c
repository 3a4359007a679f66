// A record is reserved and, on one path, neither submitted nor discarded.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct record {
	__u32 pid;
	__u32 size;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record)
		return 0;
	record->pid = bpf_get_current_pid_tgid() >> 32;
	if (record->pid == 1)
		return 0;
	bpf_ringbuf_submit(record, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
