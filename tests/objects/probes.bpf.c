// Probes as libbpf's macros see them: arguments in registers, behind the wrapper of a
// system call, on the stack, of a marker; sessions, cookies, traced functions, iterators.
//
// build arm64: -D__TARGET_ARCH_arm64
#if !defined(__TARGET_ARCH_arm64)
#define __TARGET_ARCH_x86
#endif

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

// The kernel's own names of registers, as in vmlinux.h.
#define __VMLINUX_H__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31];
			__u64 sp;
			__u64 pc;
			__u64 pstate;
		};
	};
	__u64 orig_x0;
	__s32 syscallno;
};
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#endif
#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "GPL";

// What a program saw, by number.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

static __always_inline void note(__u32 at, __u64 value)
{
	bpf_map_update_elem(&seen, &at, &value, BPF_ANY);
}

SEC("kprobe/do_it")
int BPF_KPROBE(entered, long first, long second, long third, long fourth, long fifth)
{
	note(0, first);
	note(1, second);
	note(4, fifth);
	note(5, bpf_get_func_ip(ctx));
	note(6, PT_REGS_IP(ctx));
	note(7, bpf_get_attach_cookie(ctx));
	return 1;
}

SEC("kretprobe/do_it")
int BPF_KRETPROBE(returned, long ret)
{
	note(0, ret);
	return 0;
}

SEC("ksyscall/write")
int BPF_KSYSCALL(wrote, int fd, const char *buf, unsigned long count)
{
	note(0, fd);
	note(1, (__u64)buf);
	note(2, count);
	return 0;
}

SEC("ksyscall/mmap")
int BPF_KSYSCALL(mapped, void *addr, unsigned long length, int prot, int flags)
{
	note(0, length);
	note(1, flags);
	return 0;
}

SEC("kretsyscall/write")
int BPF_KRETPROBE(written, long ret)
{
	note(0, ret);
	return 0;
}

SEC("uprobe//usr/bin/tool:work")
int working(struct pt_regs *ctx)
{
	__u64 value = 0;
	__u64 sp = PT_REGS_SP(ctx);

	note(0, PT_REGS_PARM2(ctx));
	// The first argument that has no register.
#if defined(__TARGET_ARCH_arm64)
	bpf_probe_read_user(&value, sizeof(value), (void *)sp);
#else
	bpf_probe_read_user(&value, sizeof(value), (void *)(sp + 8));
#endif
	note(1, value);
	note(2, bpf_get_func_ip(ctx));
	return 0;
}

SEC("kprobe/many")
int many(struct pt_regs *ctx)
{
	__u64 value = 0;
	__u64 sp = PT_REGS_SP(ctx);

#if defined(__TARGET_ARCH_arm64)
	bpf_probe_read_kernel(&value, sizeof(value), (void *)sp);
#else
	bpf_probe_read_kernel(&value, sizeof(value), (void *)(sp + 8));
#endif
	note(0, value);
	return 0;
}

SEC("usdt//usr/bin/tool:tool:request")
int BPF_USDT(request, int id, const char *path, long size)
{
	note(0, id);
	note(1, (__u64)path);
	note(2, size);
	note(3, bpf_usdt_arg_cnt(ctx));
	note(4, bpf_usdt_cookie(ctx));
	return 0;
}

SEC("kprobe.multi/vfs_*")
int multi(struct pt_regs *ctx)
{
	note(0, bpf_get_attach_cookie(ctx));
	note(1, bpf_get_func_ip(ctx));
	return 0;
}

extern bool bpf_session_is_return(void) __ksym;
extern __u64 *bpf_session_cookie(void) __ksym;

SEC("kprobe.session/vfs_*")
int session(struct pt_regs *ctx)
{
	__u64 *cookie = bpf_session_cookie();

	if (bpf_session_is_return()) {
		note(0, *cookie);
		return 0;
	}
	*cookie = PT_REGS_PARM1(ctx);
	// An odd argument: no return, please.
	return PT_REGS_PARM1(ctx) & 1;
}

SEC("fentry/do_it")
int BPF_PROG(before, int first, long second)
{
	__u64 value = 0;

	note(0, first);
	note(1, second);
	note(2, bpf_get_func_arg_cnt(ctx));
	bpf_get_func_arg(ctx, 1, &value);
	note(3, value);
	note(4, bpf_get_func_ret(ctx, &value));
	note(5, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("fmod_ret/do_it")
int BPF_PROG(instead, int first, long second, int ret)
{
	note(0, ret);
	return first < 0 ? -22 : 0;
}

SEC("fexit/do_it")
int BPF_PROG(after, int first, long second, int ret)
{
	__u64 value = 0;

	note(1, ret);
	bpf_get_func_ret(ctx, &value);
	note(2, value);
	return 0;
}

SEC("lsm/file_open")
int BPF_PROG(refuse, void *file, int ret)
{
	note(0, ret);
	return -1;
}

SEC("lsm/file_open")
int BPF_PROG(allow, void *file, int ret)
{
	note(1, ret + 7);
	return 0;
}

#if !defined(__TARGET_ARCH_arm64)
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_value value = {};

	note(0, ctx->sample_period);
	note(1, ctx->addr);
	bpf_perf_prog_read_value(ctx, &value, sizeof(value));
	note(2, value.counter);
	return ctx->sample_period > 100;
}
#endif

struct seq_file;
struct thing {
	int number;
} first_thing;
struct bpf_iter_meta {
	__bpf_md_ptr(struct seq_file *, seq);
	__u64 session_id;
	__u64 seq_num;
};
struct bpf_iter__thing {
	__bpf_md_ptr(struct bpf_iter_meta *, meta);
	__bpf_md_ptr(struct thing *, thing);
};

SEC("iter/thing")
int show(struct bpf_iter__thing *ctx)
{
	struct thing *thing = ctx->thing;

	note(ctx->meta->seq_num, thing ? thing->number : 99);
	return 0;
}
