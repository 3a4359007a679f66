// A record of the size of a pointer is reserved.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct record {
	__u32 pid;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(record), 0);

	if (!record)
		return 0;
	record->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
