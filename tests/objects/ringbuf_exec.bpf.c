// A record in a ring buffer for each program started: reserve, fill, submit; and the
// __data_loc string of the tracepoint.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct trace_event_raw_sched_process_exec {
	unsigned long long common;
	unsigned int __data_loc_filename;
	int pid;
	int old_pid;
} __attribute__((preserve_access_index));

struct started {
	__u32 pid, uid;
	char comm[16];
	char file[64];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} started SEC(".maps");

const struct started *keep_type_started __attribute__((unused));
__u64 lost;

SEC("tp/sched/sched_process_exec")
int on_exec(struct trace_event_raw_sched_process_exec *ctx)
{
	struct started *record = bpf_ringbuf_reserve(&started, sizeof(*record), 0);
	__u16 offset = ctx->__data_loc_filename;

	if (!record) {
		lost++;
		return 1;
	}
	record->pid = ctx->pid;
	record->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	if (bpf_probe_read_kernel_str(record->file, sizeof(record->file),
				      (char *)ctx + offset) < 0) {
		bpf_ringbuf_discard(record, 0);
		return 2;
	}
	bpf_ringbuf_submit(record, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
