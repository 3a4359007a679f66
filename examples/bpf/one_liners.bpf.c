// The first one-liners of bpftrace's tutorial as C, each in one or two programs.
// docs/from-bcc-and-bpftrace.md shows them beside the originals.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "count.h"
#include "registers.h"
#include "slots.h"
#include "tracepoint.h"

struct comm {
	char text[16];
};

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
} __attribute__((preserve_access_index));

struct trace_event_raw_sys_exit {
	struct trace_entry ent;
	long id;
	long ret;
} __attribute__((preserve_access_index));

// Which files are opened, and by whom?

SEC("tp/syscalls/sys_enter_openat")
int print_open(struct trace_event_raw_sys_enter *ctx)
{
	char path[64] = {};
	struct comm comm;

	bpf_get_current_comm(&comm, sizeof(comm));
	bpf_probe_read_user_str(path, sizeof(path), (void *)ctx->args[1]);
	bpf_printk("%s %s", comm.text, path);
	return 0;
}

// How many system calls does each program make?

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct comm);
	__type(value, __u64);
} syscalls SEC(".maps");

SEC("tp/raw_syscalls/sys_enter")
int count_syscall(void *ctx)
{
	struct comm comm;

	bpf_get_current_comm(&comm, sizeof(comm));
	count(&syscalls, &comm);
	return 0;
}

// How much does one process read at a time?

const volatile __u32 wanted_pid;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} read_hist SEC(".maps");

static __always_inline void add_to(void *hist, __u32 slot)
{
	__u64 *value = bpf_map_lookup_elem(hist, &slot);

	if (value)
		__sync_fetch_and_add(value, 1);
}

SEC("tp/syscalls/sys_exit_read")
int read_sizes(struct trace_event_raw_sys_exit *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 == wanted_pid && ctx->ret >= 0)
		add_to(&read_hist, slot_of(ctx->ret));
	return 0;
}

// The same for all processes, from the function's result, in steps of 200 bytes: slot 0
// counts negative results, the last slot results of 2000 and more.

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 12);
	__type(key, __u32);
	__type(value, __u64);
} linear SEC(".maps");

SEC("kretprobe/vfs_read")
int BPF_KRETPROBE(read_results, long returned)
{
	add_to(&linear, returned < 0 ? 0 : returned >= 2000 ? 11 : 1 + (__u64)returned / 200);
	return 0;
}

// How long do reads take?

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} start SEC(".maps");

struct latency {
	struct comm comm;
	__u64 slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct latency);
	__type(value, __u64);
} ns SEC(".maps");

SEC("kprobe/vfs_read")
int BPF_KPROBE(read_begins)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&start, &tid, &now, BPF_ANY);
	return 0;
}

SEC("kretprobe/vfs_read")
int BPF_KRETPROBE(read_ends)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 *since = bpf_map_lookup_elem(&start, &tid);
	struct latency latency = {};

	if (!since)
		return 0;
	latency.slot = slot_of(bpf_ktime_get_ns() - *since);
	bpf_map_delete_elem(&start, &tid);
	bpf_get_current_comm(&latency.comm, sizeof(latency.comm));
	count(&ns, &latency);
	return 0;
}

// How often does each of several tracepoints fire? One program for all of them: the
// cookie of the attachment identifies the tracepoint.

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, __u64);
} events SEC(".maps");

SEC("tp")
int count_event(void *ctx)
{
	__u64 which = bpf_get_attach_cookie(ctx);

	count(&events, &which);
	return 0;
}

// Which kernel code runs, and which leads to a task switch?

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} by_stack SEC(".maps");

static __always_inline int count_stack(void *ctx)
{
	long id = bpf_get_stackid(ctx, &stacks, 0);
	__u32 key = id;

	if (id >= 0)
		count(&by_stack, &key);
	return 0;
}

SEC("perf_event")
int profile(void *ctx)
{
	return count_stack(ctx);
}

SEC("tp/sched/sched_switch")
int switches(void *ctx)
{
	return count_stack(ctx);
}

// How large are disk requests?

struct trace_event_raw_block_rq {
	struct trace_entry ent;
	__u32 dev;
	__u64 sector;
	unsigned int nr_sector;
	unsigned int bytes;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} block_hist SEC(".maps");

SEC("tp/block/block_rq_issue")
int block_sizes(struct trace_event_raw_block_rq *ctx)
{
	add_to(&block_hist, slot_of(ctx->bytes));
	return 0;
}

// Which paths are opened, read from kernel structs?

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct qstr d_name;
} __attribute__((preserve_access_index));

struct path {
	struct dentry *dentry;
} __attribute__((preserve_access_index));

SEC("kprobe/vfs_open")
int BPF_KPROBE(print_path, const struct path *path)
{
	const unsigned char *name = BPF_CORE_READ(path, dentry, d_name.name);
	char text[64] = {};

	bpf_probe_read_kernel_str(text, sizeof(text), name);
	bpf_printk("open path: %s", text);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
