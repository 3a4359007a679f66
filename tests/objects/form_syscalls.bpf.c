// ksyscall and kretsyscall: a system call's arguments and its result.
//
// flags: -D__TARGET_ARCH_x86
#include <linux/bpf.h>
#include <linux/types.h>

// The kernel's own names of registers, as in vmlinux.h.
#define __VMLINUX_H__
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
} __attribute__((preserve_access_index));

#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct sums {
	__u64 calls;
	__u64 bytes;
	__u64 zeros;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, struct sums);
} sizes SEC(".maps"), results SEC(".maps");

static __always_inline void add(void *map, __u64 key, __u64 bytes, bool zero)
{
	struct sums new = {.calls = 1, .bytes = bytes, .zeros = zero};
	struct sums *sums = bpf_map_lookup_elem(map, &key);

	if (sums) {
		__sync_fetch_and_add(&sums->calls, 1);
		__sync_fetch_and_add(&sums->bytes, bytes);
		__sync_fetch_and_add(&sums->zeros, zero);
	} else {
		bpf_map_update_elem(map, &key, &new, BPF_ANY);
	}
}

SEC("ksyscall/write")
int BPF_KSYSCALL(entered, int fd, const char *buf, unsigned long count)
{
	char first = 1;

	bpf_probe_read_user(&first, sizeof(first), buf);
	add(&sizes, fd, count, !first);
	return 0;
}

SEC("kretsyscall/write")
int BPF_KRETPROBE(left, long returned)
{
	add(&results, returned < 0 ? returned : 0, returned, !returned);
	return 0;
}
