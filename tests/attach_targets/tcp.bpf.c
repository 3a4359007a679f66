// Congestion controls and the kernel's own test structure, right and wrong: what a program
// gets, may write and may call.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	unsigned long sk_pacing_rate;
	__u32 sk_pacing_status;
	int sk_rcvbuf;
};
struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 srtt_us;
};
struct rate_sample {
	long rtt_us;
};
struct bpf_dummy_ops_state {
	int val;
};
#pragma clang attribute pop
struct ack_sample;
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, __u32, __u32);
	void (*set_state)(struct sock *, __u8);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	__u32 (*undo_cwnd)(struct sock *);
	void (*cong_control)(struct sock *, __u32, int, const struct rate_sample *);
	unsigned long (*get_info)(struct sock *, __u32, int *, void *);
	void (*init)(struct sock *);
	__u32 flags;
	char name[16];
};
struct bpf_dummy_ops {
	int (*test_1)(struct bpf_dummy_ops_state *);
	int (*test_2)(struct bpf_dummy_ops_state *, int, unsigned short, char, unsigned long);
	int (*test_sleepable)(struct bpf_dummy_ops_state *);
};

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} rounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

#define argument(kind) __attribute__((btf_decl_tag("arg:" kind)))

__u64 seen;

#define SSTHRESH(name) SEC("struct_ops") __u32 BPF_PROG(name, struct sock *sk)
#define INIT(name) SEC("struct_ops") void BPF_PROG(name, struct sock *sk)

SSTHRESH(halves)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd >> 1;
}

SSTHRESH(asks_reno)
{
	return tcp_reno_ssthresh(sk);
}

SSTHRESH(returns_socket)
{
	return (unsigned long)sk;
}

SSTHRESH(fourth_argument)
{
	return ctx[3];
}

SSTHRESH(half_argument)
{
	return *((volatile __u32 *)ctx);
}

SSTHRESH(odd_argument)
{
	return *(volatile __u32 *)((char *)ctx + 4);
}

SSTHRESH(writes_argument)
{
	*(volatile __u64 *)ctx = 0;
	return 0;
}

SSTHRESH(loops)
{
	__u64 *round = bpf_sk_storage_get(&rounds, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	__u32 sum = 0;

	for (int at = 0; round && at < 100 && sum <= *round; at++)
		sum += *round;
	return sum;
}

INIT(writes)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_cwnd = 10;
	tp->snd_ssthresh = 20;
	tp->inet_conn.icsk_ca_priv[3] = 7;
	sk->sk_pacing_rate = 1000;
	sk->sk_pacing_status = 1;
}

INIT(writes_rtt)
{
	((struct tcp_sock *)sk)->srtt_us = 1;
}

INIT(writes_buffer)
{
	sk->sk_rcvbuf = 1;
}

INIT(writes_past)
{
	*(volatile __u64 *)&((struct tcp_sock *)sk)->snd_ssthresh = 1;
}

INIT(writes_into_array)
{
	((volatile char *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv)[5] = 1;
}

INIT(writes_number)
{
	*(volatile int *)10 = 1;
}

INIT(leaves_section)
{
	bpf_rcu_read_lock();
}

INIT(asks_time)
{
	seen = bpf_ktime_get_coarse_ns();
	bpf_tail_call(ctx, &programs, 0);
}

INIT(redirects)
{
	bpf_redirect(1, 0);
}

INIT(sets_option)
{
	int value = 1;

	bpf_setsockopt(sk, 6, 1, &value, sizeof(value));
}

SEC("struct_ops")
void BPF_PROG(sets_option_later, struct sock *sk, __u8 state)
{
	int value = state;

	bpf_setsockopt(sk, 6, 1, &value, sizeof(value));
}

SEC("struct_ops")
void BPF_PROG(avoids, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_cong_avoid_ai((struct tcp_sock *)sk, 4, acked);
	tcp_reno_cong_avoid(sk, ack, acked);
	bpf_tcp_send_ack(sk, ack);
}

SEC("struct_ops")
void BPF_PROG(controls, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	seen = rs->rtt_us;
}

SEC("struct_ops")
void BPF_PROG(writes_sample, struct sock *sk, __u32 ack, int flag, struct rate_sample *rs)
{
	rs->rtt_us = 0;
}

SEC("struct_ops")
unsigned long BPF_PROG(informs, struct sock *sk, __u32 ext, int *attr, void *info)
{
	return 0;
}

SEC("struct_ops.s")
void BPF_PROG(sleeps, struct sock *sk)
{
	bpf_copy_from_user(&seen, sizeof(seen), 0);
}

INIT(copies)
{
	bpf_copy_from_user(&seen, sizeof(seen), 0);
}

__noinline int doubled(struct sock *sk argument("trusted"))
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SSTHRESH(calls_global)
{
	return doubled(sk);
}

__noinline int first_argument(__u64 *ctx argument("ctx"))
{
	return ctx[0] != 0;
}

SSTHRESH(passes_context)
{
	return first_argument(ctx);
}

#define TEST_1(name) SEC("struct_ops") int BPF_PROG(name, struct bpf_dummy_ops_state *state)

TEST_1(checks_null)
{
	if (!state)
		return 0xf2f3f4f5;
	state->val = 0x5a;
	return state->val;
}

TEST_1(checks_no_null)
{
	return state->val;
}

TEST_1(writes_past_state)
{
	if (state)
		*(volatile __u64 *)&state->val = 1;
	return 0;
}

SEC("struct_ops")
int BPF_PROG(many, struct bpf_dummy_ops_state *state, int a1, unsigned short a2, char a3,
	     unsigned long a4)
{
	seen = a1 + a2 + a3 + a4;
	return state->val;
}

SEC("struct_ops.s")
int BPF_PROG(sleeps_well, struct bpf_dummy_ops_state *state)
{
	bpf_copy_from_user(&seen, sizeof(seen), 0);
	return state->val;
}

SEC("struct_ops.s")
int BPF_PROG(sleeps_badly, struct bpf_dummy_ops_state *state)
{
	return 0;
}

#define TCP(name, member) \
	SEC(".struct_ops.link") struct tcp_congestion_ops name##_ops = { .member = (void *)name }
#define DUMMY(name, member) \
	SEC(".struct_ops") struct bpf_dummy_ops name##_ops = { .member = (void *)name }

TCP(halves, ssthresh);
TCP(asks_reno, ssthresh);
TCP(returns_socket, ssthresh);
TCP(fourth_argument, ssthresh);
TCP(half_argument, ssthresh);
TCP(odd_argument, ssthresh);
TCP(writes_argument, ssthresh);
TCP(loops, ssthresh);
TCP(calls_global, ssthresh);
TCP(passes_context, ssthresh);
TCP(writes, init);
TCP(writes_rtt, init);
TCP(writes_buffer, init);
TCP(writes_past, init);
TCP(writes_into_array, init);
TCP(writes_number, init);
TCP(leaves_section, init);
TCP(asks_time, init);
TCP(redirects, init);
TCP(sets_option, init);
TCP(sets_option_later, set_state);
TCP(avoids, cong_avoid);
TCP(controls, cong_control);
TCP(writes_sample, cong_control);
TCP(informs, get_info);
TCP(sleeps, init);
TCP(copies, init);
DUMMY(checks_null, test_1);
DUMMY(checks_no_null, test_1);
DUMMY(writes_past_state, test_1);
DUMMY(many, test_2);
DUMMY(sleeps_well, test_sleepable);
DUMMY(sleeps_badly, test_1);

char LICENSE[] SEC("license") = "GPL";
