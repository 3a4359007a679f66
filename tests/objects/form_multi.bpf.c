// kprobe.multi and kretprobe.multi: one program at several functions, told apart by
// bpf_get_func_ip.
//
// flags: -D__TARGET_ARCH_x86
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct sums {
	__u64 calls;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, struct sums);
} entries SEC(".maps"), returns SEC(".maps");

static __always_inline void add(void *map, __u64 function, __u64 bytes)
{
	struct sums new = {.calls = 1, .bytes = bytes}, *sums = bpf_map_lookup_elem(map, &function);

	if (sums) {
		__sync_fetch_and_add(&sums->calls, 1);
		__sync_fetch_and_add(&sums->bytes, bytes);
	} else {
		bpf_map_update_elem(map, &function, &new, BPF_ANY);
	}
}

SEC("kprobe.multi/vfs_writ?")
int BPF_KPROBE(entered, void *file, const char *buf, unsigned long count)
{
	add(&entries, bpf_get_func_ip(ctx), count);
	return 0;
}

SEC("kretprobe.multi/vfs_writ?")
int BPF_KRETPROBE(left, long returned)
{
	add(&returns, bpf_get_func_ip(ctx), returned);
	return 0;
}
