// Programs on the connection tracker, which most kernels have as a module: kfuncs, right and wrong,
// and a traced function.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct nf_conn {
	unsigned long status;
	__u32 mark;
} __attribute__((preserve_access_index));

struct bpf_ct_opts___own {
	__s32 netns_id;
	__s32 error;
	__u8 l4proto;
	__u8 dir;
	__u8 reserved[2];
};

extern struct nf_conn *bpf_xdp_ct_lookup(struct xdp_md *, struct bpf_sock_tuple *, __u32,
					 struct bpf_ct_opts___own *, __u32) __ksym;
extern void bpf_ct_release(struct nf_conn *) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *, __u32) __ksym;

__u64 seen;

static __always_inline struct nf_conn *look_up(struct xdp_md *ctx)
{
	struct bpf_ct_opts___own opts = { .netns_id = -1, .l4proto = 6 };
	struct bpf_sock_tuple tuple = {};

	return bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
}

SEC("xdp")
int finds(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	bpf_ct_change_timeout(conn, 10);
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("xdp")
int reads(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);
	int action = XDP_PASS;

	if (conn) {
		if (conn->status & 1)
			action = XDP_DROP;
		bpf_ct_release(conn);
	}
	return action;
}

SEC("xdp")
int keeps(struct xdp_md *ctx)
{
	return look_up(ctx) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int marks(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	conn->mark = 5;
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("xdp")
int changes_status(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	conn->status = 5;
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("xdp")
int marks_a_byte(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	((volatile char *)&conn->mark)[2] = 5;
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("xdp")
int marks_too_much(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	*(volatile __u64 *)&conn->mark = 5;
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("xdp")
int forgets_null(struct xdp_md *ctx)
{
	bpf_ct_release(look_up(ctx));
	return XDP_PASS;
}

SEC("xdp")
int releases_twice(struct xdp_md *ctx)
{
	struct nf_conn *conn = look_up(ctx);

	if (!conn)
		return XDP_PASS;
	bpf_ct_release(conn);
	bpf_ct_release(conn);
	return XDP_DROP;
}

SEC("socket")
int may_not(struct __sk_buff *skb)
{
	bpf_ct_release((void *)skb);
	return 0;
}

SEC("fentry/nf_ct_delete")
int deletes(__u64 *ctx)
{
	struct nf_conn *conn = (void *)ctx[0];

	seen = conn->status + ctx[1];
	return 0;
}

SEC("fexit/nf_ct_delete")
int reads_too_much(__u64 *ctx)
{
	seen = ctx[4];
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
