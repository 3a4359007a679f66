// Queueing disciplines, right and wrong: what a program gets, may write, and has to give back.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gnet_stats_queue {
	__u32 drops;
};
struct qdisc_skb_head {
	__u32 qlen;
};
struct Qdisc {
	__u32 limit;
	__u32 handle;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};
struct sk_buff {
	__s64 tstamp;
	char cb[48];
	__u32 len;
};
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};
#pragma clang attribute pop
struct nlattr;
struct netlink_ext_ack;
struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	int (*change)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
};

extern __u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire, __u64 delta) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
extern int bpf_dynptr_from_skb(struct __sk_buff *s, __u64 flags, struct bpf_dynptr *ptr) __ksym;

#define kptr __attribute__((btf_type_tag("kptr")))
#define argument(kind) __attribute__((btf_decl_tag("arg:" kind)))

struct slot {
	struct sk_buff kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

#define ENQUEUE(name) \
	SEC("struct_ops") \
	int BPF_PROG(name, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)

ENQUEUE(drops)
{
	bpf_qdisc_skb_drop(skb, to_free);
	return 1;
}

ENQUEUE(keeps)
{
	__u32 zero = 0;
	struct slot *slot = bpf_map_lookup_elem(&slots, &zero);

	if (slot)
		skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	return 0;
}

ENQUEUE(leaks)
{
	return bpf_skb_get_hash(skb);
}

ENQUEUE(drops_twice)
{
	bpf_kfree_skb(skb);
	return bpf_skb_get_hash((void *)ctx[0]);
}

ENQUEUE(calls_on)
{
	bpf_kfree_skb(skb);
	bpf_tail_call(ctx, &programs, 0);
	return 0;
}

ENQUEUE(counts_sent)
{
	bpf_qdisc_bstats_update(sch, skb);
	bpf_qdisc_skb_drop(skb, to_free);
	return 0;
}

ENQUEUE(writes)
{
	sch->limit = 7;
	sch->q.qlen++;
	sch->qstats.drops++;
	skb->tstamp = 1;
	skb->cb[8] = 1;
	bpf_qdisc_watchdog_schedule(sch, 1, 0);
	bpf_kfree_skb(skb);
	return 0;
}

ENQUEUE(writes_length)
{
	skb->len = 0;
	bpf_kfree_skb(skb);
	return 0;
}

ENQUEUE(writes_past)
{
	asm volatile("*(u64 *)(%0 + 0) = %1" : : "r"(&sch->q.qlen), "r"(0ULL) : "memory");
	bpf_kfree_skb(skb);
	return 0;
}

ENQUEUE(writes_list)
{
	to_free->skb = 0;
	bpf_kfree_skb(skb);
	return 0;
}

ENQUEUE(loads_half)
{
	__u32 half = *((volatile __u32 *)ctx + 4);

	bpf_kfree_skb(skb);
	return half;
}

ENQUEUE(looks_inside)
{
	struct bpf_dynptr packet;
	__u8 byte = 0;

	bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &packet);
	bpf_dynptr_read(&byte, 1, &packet, 0, 0);
	bpf_qdisc_skb_drop(skb, to_free);
	return byte;
}

__noinline int drop_later(__u64 *ctx argument("ctx"))
{
	bpf_kfree_skb((void *)ctx[0]);
	return 0;
}

ENQUEUE(drops_in_function)
{
	bpf_kfree_skb(skb);
	return drop_later(ctx);
}

#define DEQUEUE(name) SEC("struct_ops") struct sk_buff *BPF_PROG(name, struct Qdisc *sch)

DEQUEUE(has_none)
{
	return 0;
}

DEQUEUE(gives)
{
	__u32 zero = 0;
	struct slot *slot = bpf_map_lookup_elem(&slots, &zero);
	struct sk_buff *skb = slot ? bpf_kptr_xchg(&slot->skb, 0) : 0;

	if (skb)
		bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

DEQUEUE(gives_number)
{
	return (void *)1;
}

DEQUEUE(gives_queue)
{
	return (void *)sch;
}

SEC("struct_ops")
int BPF_PROG(begins, struct Qdisc *sch, void *opt, struct netlink_ext_ack *extack)
{
	sch->limit = 1000;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(forgets, struct Qdisc *sch)
{
	sch->q.qlen = 0;
}

SEC("struct_ops")
int BPF_PROG(changes, struct Qdisc *sch, void *opt, void *extack)
{
	return 0;
}

#define TABLE(name, member) \
	SEC(".struct_ops.link") struct Qdisc_ops name##_ops = { .member = (void *)name }

SEC(".struct_ops.link")
struct Qdisc_ops whole = {
	.enqueue = (void *)drops,
	.dequeue = (void *)has_none,
	.init = (void *)begins,
	.reset = (void *)forgets,
};
TABLE(keeps, enqueue);
TABLE(leaks, enqueue);
TABLE(drops_twice, enqueue);
TABLE(calls_on, enqueue);
TABLE(counts_sent, enqueue);
TABLE(writes, enqueue);
TABLE(writes_length, enqueue);
TABLE(writes_past, enqueue);
TABLE(writes_list, enqueue);
TABLE(loads_half, enqueue);
TABLE(looks_inside, enqueue);
TABLE(drops_in_function, enqueue);
TABLE(gives, dequeue);
TABLE(gives_number, dequeue);
TABLE(gives_queue, dequeue);
TABLE(changes, change);

char LICENSE[] SEC("license") = "GPL";
