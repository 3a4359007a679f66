// Tail calls from functions: they replace the frame of that function only, and what the
// other program returns comes back to its caller. A program has eight frames each time.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int itself(struct xdp_md *ctx);
int itself_by_global(struct xdp_md *ctx);
int leaf(struct xdp_md *ctx);
int eight_more(struct xdp_md *ctx);
int hop(struct xdp_md *ctx);
int twice(struct xdp_md *ctx);

enum { ITSELF, GLOBAL, LEAF, EIGHT, HOP, TWICE, NOBODY };

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 7);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct xdp_md *));
} jumps SEC(".maps") = {
	.values = {
		[ITSELF] = (void *)&itself,
		[GLOBAL] = (void *)&itself_by_global,
		[LEAF] = (void *)&leaf,
		[EIGHT] = (void *)&eight_more,
		[HOP] = (void *)&hop,
		[TWICE] = (void *)&twice,
	},
};

// How often each of them was entered, and what came back to whom.
__u32 entered;
__u64 trail;

static __always_inline void note(__u64 what)
{
	trail = trail * 31 + what;
}

// The compiler takes what follows a tail call for all that a function returns.
#define KEEP(x) asm volatile("" : "+r"(x))

// To the limit: 33 tail calls, each from one frame further in.
static __noinline int to_itself(struct xdp_md *ctx)
{
	volatile __u64 keep = entered;

	bpf_tail_call(ctx, &jumps, ITSELF);
	return keep;
}

SEC("xdp")
int itself(struct xdp_md *ctx)
{
	__u32 depth = ++entered;
	int back;

	KEEP(depth);
	back = to_itself(ctx);
	note(depth + ((__u64)back << 8));
	return back + 1;
}

// The same from a global function.
__noinline int global_to_itself(struct xdp_md *ctx, __u32 depth)
{
	bpf_tail_call(ctx, &jumps, GLOBAL);
	KEEP(depth);
	return depth * 3;
}

SEC("xdp")
int itself_by_global(struct xdp_md *ctx)
{
	__u32 depth = ++entered;
	int back;

	back = global_to_itself(ctx, depth);
	note(depth ^ back);
	return back + 1;
}

// Who returns at once: what counts is all tail calls of the run, not how deep they lead.
SEC("xdp")
int leaf(struct xdp_md *ctx)
{
	entered++;
	return 1000;
}

static __noinline int to(struct xdp_md *ctx, __u32 index)
{
	int missed = 1;

	bpf_tail_call(ctx, &jumps, index);
	KEEP(missed);
	return missed;
}

SEC("xdp")
int forty_leaves(struct xdp_md *ctx)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < 40; i++)
		sum += to(ctx, LEAF);
	note(sum);
	return sum;
}

// Nobody is there, and no such place.
SEC("xdp")
int nowhere(struct xdp_md *ctx)
{
	return to(ctx, NOBODY) + to(ctx, NOBODY + 1) * 2 + to(ctx, -1) * 4;
}

// Each program has eight frames: 15 are under way in `eight_more`.
#define FRAME(name, next)                                                                          \
	static __noinline int name(struct xdp_md *ctx, __u64 given)                                \
	{                                                                                          \
		int back = next(ctx, given * 5 + 1);                                               \
                                                                                                   \
		note(given + back);                                                                \
		return back + 1;                                                                   \
	}

static __noinline int last_of_all(struct xdp_md *ctx, __u64 given)
{
	__u64 own[2] = { given, given + 7 };

	KEEP(own[0]);
	KEEP(own[1]);
	note(own[0] + own[1]);
	return given;
}

FRAME(e6, last_of_all)
FRAME(e5, e6)
FRAME(e4, e5)
FRAME(e3, e4)
FRAME(e2, e3)
FRAME(e1, e2)

SEC("xdp")
int eight_more(struct xdp_md *ctx)
{
	entered++;
	return e1(ctx, entered) + 100;
}

static __noinline int leave_for_eight(struct xdp_md *ctx, __u64 given)
{
	bpf_tail_call(ctx, &jumps, EIGHT);
	KEEP(given);
	return given;
}

FRAME(f6, leave_for_eight)
FRAME(f5, f6)
FRAME(f4, f5)
FRAME(f3, f4)
FRAME(f2, f3)
FRAME(f1, f2)

SEC("xdp")
int eight_and_eight(struct xdp_md *ctx)
{
	return f1(ctx, 2) + 10000;
}

// Several frames at each of several hops. (A kernel's thread has 16 KiB of stack.)
static __noinline int h3(struct xdp_md *ctx, __u64 given)
{
	if (entered < 9)
		bpf_tail_call(ctx, &jumps, HOP);
	bpf_tail_call(ctx, &jumps, EIGHT);
	KEEP(given);
	return given;
}

FRAME(h2, h3)
FRAME(h1, h2)

SEC("xdp")
int hop(struct xdp_md *ctx)
{
	__u64 round = entered++;
	int back = h1(ctx, round);

	note(back ^ round);
	return back * 3 + 1;
}

// A tree: each program calls two others, until the limit is reached somewhere in it.
SEC("xdp")
int twice(struct xdp_md *ctx)
{
	__u32 number = entered++;
	int left = 0, right;

	KEEP(number);
	if (number < 12)
		left = to(ctx, TWICE);
	right = to(ctx, number % 3 ? LEAF : NOBODY);
	note(number + left * 7 + right);
	return left + right + 1;
}

// The main program's own tail call, after those of its functions.
SEC("xdp")
int function_then_main(struct xdp_md *ctx)
{
	int i;

	for (i = 0; i < 32; i++)
		note(to(ctx, LEAF));
	if (ctx->data_end - ctx->data > 70) {
		note(to(ctx, LEAF));
	}
	bpf_tail_call(ctx, &jumps, EIGHT);
	return 5;
}

// Nine frames without a tail call: the verifier counts a callback where its address is
// taken, and each global function anew.
static long count(__u32 index, void *ctx)
{
	note(index);
	return 0;
}

#define PASS(name, next)                                                                           \
	static __noinline int name(void *callback, void *ctx)                                      \
	{                                                                                          \
		KEEP(callback);                                                                    \
		return next(callback, ctx) + 1;                                                    \
	}

static __noinline int p6(void *callback, void *ctx)
{
	KEEP(callback);
	return bpf_loop(3, callback, ctx, 0);
}

PASS(p5, p6)
PASS(p4, p5)
PASS(p3, p4)
PASS(p2, p3)
PASS(p1, p2)

__noinline int global_with_callback(int given)
{
	void *callback = count;

	KEEP(callback);
	return p1(callback, &given);
}

SEC("xdp")
int nine_frames(struct xdp_md *ctx)
{
	return global_with_callback(4);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
