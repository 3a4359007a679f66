// Exceptions from deep calls, from frames whose addresses are passed on, in loops, and after
// tail calls that came back; with and without a callback.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __exception_cb(name) __attribute__((btf_decl_tag("exception_callback:" #name)))
#define KEEP(x) asm volatile("" : "+r"(x))

extern void bpf_throw(__u64 cookie) __ksym;

int simple(struct __sk_buff *skb);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct __sk_buff *));
} jumps SEC(".maps") = {
	.values = { [0] = (void *)&simple },
};

__u64 seen[8];
__u32 times;

static __always_inline void note(__u64 what)
{
	if (times < 8)
		seen[times++] = what;
}

SEC("tc")
int simple(struct __sk_buff *skb)
{
	note(1000);
	return 21;
}

static __noinline int fourth(volatile __u64 *sum, __u64 limit)
{
	*sum += 1;
	if (*sum > limit)
		bpf_throw(*sum);
	return *sum;
}

static __noinline int third(volatile __u64 *sum, __u64 limit)
{
	volatile __u64 own = *sum * 2;
	int result = fourth(&own, limit);

	*sum = own;
	return result + 1;
}

static __noinline int second(__u64 start, __u64 limit)
{
	volatile __u64 sum = start;
	int result = third(&sum, limit);

	note(sum);
	return result;
}

/* A loop that ends by the exception. */
SEC("tc")
int in_loop(struct __sk_buff *skb)
{
	int i, result = 0;

	for (i = 0; i < 100; i++)
		result += second(i, skb->len / 2 + 20);
	note(result);
	return 3;
}

static __noinline int to_simple(struct __sk_buff *skb)
{
	int missed = 5;

	bpf_tail_call(skb, &jumps, 0);
	KEEP(missed);
	return missed;
}

SEC("tc")
int after_a_tail_call(struct __sk_buff *skb)
{
	int back = to_simple(skb);

	note(back);
	second(back, 3);
	return 1;
}

__noinline int handler(__u64 cookie)
{
	volatile __u64 own[4] = { cookie, 1, 2, 3 };
	__u64 sum = 0;
	int i;

	for (i = 0; i < 4; i++)
		sum = sum * 10 + own[i];
	note(sum);
	return sum % 1000;
}

SEC("tc")
__exception_cb(handler)
int handled_in_depth(struct __sk_buff *skb)
{
	volatile __u64 sum = skb->len;

	note(third(&sum, 1000));
	third(&sum, 5);
	return 1;
}

/* No call comes back, so what follows it is dead. */
SEC("tc")
__exception_cb(handler)
int never_back(struct __sk_buff *skb)
{
	volatile __u64 sum = 7;

	return third(&sum, 2);
}

char LICENSE[] SEC("license") = "GPL";
