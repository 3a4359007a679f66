// Reports opened files of the processes in `watched`, or of all; for the options of `bpflab run`
// that give programs something to read: text behind pointers, map contents, globals.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct open {
	__u32 pid;
	__u32 gid;
	__u64 ns;
	char comm[16];
	char path[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} opens SEC(".maps");

const struct open *keep_type_open __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} total SEC(".maps");

const volatile int watched_only = 0;

struct enter {
	__u64 header;
	__u64 nr;
	__u64 args[6];
};

SEC("tp/syscalls/sys_enter_openat")
int on_open(struct enter *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	__u64 *seen = bpf_map_lookup_elem(&watched, &pid);
	__u64 *all = bpf_map_lookup_elem(&total, &zero);
	struct open *open;

	if (watched_only && !seen)
		return 0;
	if (seen)
		*seen += 1;
	if (all)
		*all += 1;
	open = bpf_ringbuf_reserve(&opens, sizeof(*open), 0);
	if (!open)
		return 0;
	__builtin_memset(open, 0, sizeof(*open));
	open->pid = pid;
	open->gid = bpf_get_current_uid_gid() >> 32;
	open->ns = bpf_ktime_get_ns();
	bpf_get_current_comm(open->comm, sizeof(open->comm));
	bpf_probe_read_user_str(open->path, sizeof(open->path), (const void *)ctx->args[1]);
	bpf_ringbuf_submit(open, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
