// Programs that tail-call one another, by the first argument of whatever system call: into a
// program that ends there, into one that goes round until the limit of tail calls, into one
// whose function makes the tail call and is come back to, into nothing. What they keep is each
// CPU's own.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct enter {
	__u64 hidden;
	long id;
	unsigned long args[6];
};

struct kept {
	__u64 runs, last, when, rounds, between;
};

int second(struct enter *ctx);
int again(struct enter *ctx);
int middle(struct enter *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct enter *));
} jumps SEC(".maps") = {
	.values = {
		[0] = (void *)&second,
		[1] = (void *)&again,
		[2] = (void *)&middle,
	},
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} own SEC(".maps");

static __always_inline struct kept *kept(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&own, &zero);
}

SEC("tp/raw_syscalls/sys_enter")
int first(struct enter *ctx)
{
	struct kept *k = kept();

	if (k)
		k->runs++;
	bpf_tail_call(ctx, &jumps, ctx->args[0]);
	return 7;
}

SEC("tp/raw_syscalls")
int second(struct enter *ctx)
{
	struct kept *k = kept();

	if (!k)
		return 0;
	k->last = ctx->args[1];
	k->when = bpf_ktime_get_ns();
	return 41;
}

SEC("tp/raw_syscalls")
int again(struct enter *ctx)
{
	struct kept *k = kept();

	if (k)
		k->rounds++;
	bpf_tail_call(ctx, &jumps, 1);
	return 33;
}

static __noinline int leave(struct enter *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return ctx->args[2];
}

SEC("tp/raw_syscalls")
int middle(struct enter *ctx)
{
	struct kept *k = kept();
	int left = leave(ctx);

	if (k)
		k->between += left;
	return left + leave(ctx);
}

char LICENSE[] SEC("license") = "GPL";
