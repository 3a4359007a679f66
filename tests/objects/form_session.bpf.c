// A session: one program at a function's entry and return. The entry keeps the number of
// bytes in the session's cookie, and skips the return of writes of fewer than 16.
//
// flags: -D__TARGET_ARCH_x86
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

extern bool bpf_session_is_return(void) __ksym;
extern __u64 *bpf_session_cookie(void) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} sums SEC(".maps");

static __always_inline void add(__u32 slot, __u64 value)
{
	__u64 *sum = bpf_map_lookup_elem(&sums, &slot);

	if (sum)
		__sync_fetch_and_add(sum, value);
}

SEC("kprobe.session/vfs_write")
int written(struct pt_regs *ctx)
{
	__u64 *asked = bpf_session_cookie();

	if (bpf_session_is_return()) {
		add(2, *asked);
		add(3, PT_REGS_RC(ctx));
		return 0;
	}
	*asked = PT_REGS_PARM3(ctx);
	add(0, 1);
	add(1, *asked);
	return *asked < 16;
}
