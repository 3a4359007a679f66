// Who reads from /dev/urandom, and how much? One line in the trace pipe for each read.
//
// Kernels before 5.18 have a tracepoint for it; on later ones the function itself is
// probed. Neither program is loaded by default: load the one that the kernel has.
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"
#include "tracepoint.h"

// The tracepoint no longer exists in new kernels, so its offsets are final.
struct urandom_read {
	struct trace_entry ent;
	int got_bits;
	int pool_left;
	int input_left;
};

SEC("?tp/random/urandom_read")
int traced(struct urandom_read *ctx)
{
	char comm[16];

	bpf_get_current_comm(comm, sizeof(comm));
	bpf_printk("%s got %d bits, %d left", comm, ctx->got_bits, ctx->input_left);
	return 0;
}

struct kiocb;

struct iov_iter {
	unsigned long count;
} __attribute__((preserve_access_index));

SEC("?kprobe/urandom_read_iter")
int BPF_KPROBE(probed, struct kiocb *kiocb, struct iov_iter *iter)
{
	char comm[16];

	bpf_get_current_comm(comm, sizeof(comm));
	bpf_printk("%s wants %d bits", comm, 8 * BPF_CORE_READ(iter, count));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
