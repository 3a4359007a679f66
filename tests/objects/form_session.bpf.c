// A session: one program at a function's entry and return. The entry keeps the number of
// bytes in the session's cookie, and skips the return of writes of fewer than 16.
//
// Linux 7 passes the context to the functions of a session.
//
// flags: -D__TARGET_ARCH_x86
// build ctx: -D__TARGET_ARCH_x86 -DWITH_CONTEXT
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#ifdef WITH_CONTEXT
extern bool bpf_session_is_return(void *ctx) __ksym;
extern __u64 *bpf_session_cookie(void *ctx) __ksym;
#else
extern bool bpf_session_is_return(void) __ksym;
extern __u64 *bpf_session_cookie(void) __ksym;
#define bpf_session_is_return(ctx) bpf_session_is_return()
#define bpf_session_cookie(ctx) bpf_session_cookie()
#endif

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
	__u64 *asked = bpf_session_cookie(ctx);

	if (bpf_session_is_return(ctx)) {
		add(2, *asked);
		add(3, PT_REGS_RC(ctx));
		return 0;
	}
	*asked = PT_REGS_PARM3(ctx);
	add(0, 1);
	add(1, *asked);
	return *asked < 16;
}
