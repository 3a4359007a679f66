// What do disks do? One line in the trace pipe for each completed request: read, write or
// another operation, its bytes and its latency. This is disksnoop of BCC; the functions are
// those of block_latency_kprobe.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "request.h"

// enum req_op
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_MASK 0xff

// A request's data at its start: as its parts are completed, its length decreases.
struct issued {
	__u64 ns;
	__u32 bytes;
	__u32 op;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u64);
	__type(value, struct issued);
} started SEC(".maps");

SEC("kprobe/blk_mq_start_request")
int BPF_KPROBE(start, struct request *request)
{
	__u64 key = (__u64)request;
	struct issued issued = {
		.ns = bpf_ktime_get_ns(),
		.bytes = BPF_CORE_READ(request, __data_len),
		.op = BPF_CORE_READ(request, cmd_flags) & REQ_OP_MASK,
	};

	bpf_map_update_elem(&started, &key, &issued, BPF_ANY);
	return 0;
}

SEC("kprobe/blk_update_request")
int BPF_KPROBE(complete, struct request *request, int status, unsigned int bytes)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)request;
	struct issued *issued = bpf_map_lookup_elem(&started, &key);
	char op[2] = "-";

	// Started before this program was attached, or only partly complete.
	if (!issued || bytes < BPF_CORE_READ(request, __data_len))
		return 0;
	if (issued->op == REQ_OP_READ)
		op[0] = 'R';
	else if (issued->op == REQ_OP_WRITE)
		op[0] = 'W';
	bpf_printk("%s %u bytes in %llu us", op, issued->bytes, (now - issued->ns) / 1000);
	bpf_map_delete_elem(&started, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
