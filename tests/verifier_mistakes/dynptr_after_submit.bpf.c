// A dynptr is used after its record was submitted.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	struct bpf_dynptr record;
	__u64 now = bpf_ktime_get_ns();

	bpf_ringbuf_reserve_dynptr(&events, sizeof(now), 0, &record);
	bpf_ringbuf_submit_dynptr(&record, 0);
	bpf_dynptr_write(&record, 0, &now, sizeof(now), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
