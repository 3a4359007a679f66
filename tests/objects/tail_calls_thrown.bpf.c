// Exceptions where a tail call led: bpf_throw() ends the program that threw, and the
// callers of the function that made the tail call go on with what that program returned.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int throws(struct __sk_buff *skb);
int throws_again(struct __sk_buff *skb);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct __sk_buff *));
} jumps SEC(".maps") = {
	.values = { [0] = (void *)&throws, [1] = (void *)&throws_again },
};

extern void bpf_throw(__u64 cookie) __ksym;

__u64 told[16];
__u32 times;

static __always_inline void tell(long what)
{
	if (times < 16)
		told[times++] = what;
}

// The compiler takes what follows a tail call for all that a function returns.
#define KEEP(x) asm volatile("" : "+r"(x))

static __noinline int deep(struct __sk_buff *skb, int given)
{
	if (skb->len > 10)
		bpf_throw(77);
	KEEP(given);
	return given;
}

SEC("tc")
int throws(struct __sk_buff *skb)
{
	int back = deep(skb, 3);

	tell(back);
	return back + 1;
}

static __noinline int to(struct __sk_buff *skb, int index)
{
	int missed = 5;

	bpf_tail_call(skb, &jumps, index);
	KEEP(missed);
	return missed;
}

SEC("tc")
int goes_on(struct __sk_buff *skb)
{
	int back = to(skb, 0);

	tell(back);
	back += to(skb, 0);
	tell(back);
	return back;
}

static __noinline int thrower(struct __sk_buff *skb)
{
	int back = to(skb, 0);

	tell(back);
	if (back)
		bpf_throw(back + 1);
	return 0;
}

SEC("tc")
int throws_again(struct __sk_buff *skb)
{
	int back = thrower(skb);

	tell(back);
	return back;
}

SEC("tc")
int goes_on_twice(struct __sk_buff *skb)
{
	int back = to(skb, 1);

	tell(back);
	return back;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
