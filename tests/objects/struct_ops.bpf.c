// A congestion control of TCP: functions, a name, a number.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct sock;
struct ack_sample;

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 flags;
	char name[16];
};

__u64 acked_sum;

SEC("struct_ops/half")
__u32 BPF_PROG(half, struct sock *sk)
{
	return 21;
}

SEC("struct_ops/count")
void BPF_PROG(count, struct sock *sk, __u32 ack, __u32 acked)
{
	acked_sum += acked;
}

SEC(".struct_ops")
struct tcp_congestion_ops halving = {
	.ssthresh = (void *)half,
	.cong_avoid = (void *)count,
	.flags = 5,
	.name = "bpf_halving",
};

char LICENSE[] SEC("license") = "GPL";
