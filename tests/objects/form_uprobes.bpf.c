// A function of the command: uprobe and uretprobe. `server` is no file,
// so the programs are attached to the command.
//
// flags: -D__TARGET_ARCH_x86
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} sums SEC(".maps");

static __always_inline void add(__u32 slot, __u64 value)
{
	__u64 *sum = bpf_map_lookup_elem(&sums, &slot);

	if (sum)
		__sync_fetch_and_add(sum, value);
}

SEC("uprobe/server:handle_request")
int BPF_KPROBE(entered, __u64 id, const char *path)
{
	char first = 0;

	bpf_probe_read_user(&first, sizeof(first), path);
	add(0, id);
	add(1, first);
	return 0;
}

SEC("uretprobe/server:handle_request")
int BPF_KRETPROBE(left, long returned)
{
	add(2, returned);
	return 0;
}
