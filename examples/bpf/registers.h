// The registers that kprobes and uprobes get, in the kernel's user-space layout:
// bpf_tracing.h reads arguments from them (BPF_KPROBE, PT_REGS_PARM1, PT_REGS_RC).
#ifndef REGISTERS_H
#define REGISTERS_H

#include <linux/types.h>

#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

// They are the first part of the kernel's saved registers.
struct pt_regs {
	struct user_pt_regs user_regs;
};
#else
#include <linux/ptrace.h>
#endif

#endif
