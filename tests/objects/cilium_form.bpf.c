// Tests in the form of Cilium's bpf/tests: programs that make a packet, run what is tested, and
// check; messages in a map, as protocol buffers.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

enum { ERROR, PASS, FAIL, SKIP, NEW_PASS = 101, NEW_FAIL };

// A suite has results (field 1) and a log (2), a result a name (1), a status (2) and a log (3),
// a log a format (1) and arguments (2).
struct messages {
	__u8 bytes[256];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct messages);
} suite_result_map SEC(".maps");

#define DROPPED_PORT 9

struct packet {
	__u8 ethernet[12];
	__be16 protocol;
	__u8 ip[20];
	__be16 ports[2];
} __attribute__((packed));

static __always_inline int check_part(struct __sk_buff *ctx, __u32 wanted)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 *status = data;

	if (data + sizeof(*status) > end)
		return ERROR;
	return *status == wanted ? PASS : FAIL;
}

static __always_inline int make(struct __sk_buff *ctx, __u16 port)
{
	struct packet packet = {
		.protocol = bpf_htons(0x0800),
		.ip = { 0x45, [9] = 17 },
		.ports = { 0, bpf_htons(port) },
	};

	if (bpf_skb_change_tail(ctx, sizeof(packet) + 4, 0))
		return ERROR;
	if (bpf_skb_store_bytes(ctx, 0, &packet, sizeof(packet), 0))
		return ERROR;
	ctx->mark = 7;
	return 0;
}

// What is tested.
SEC("tc/entry")
int drop_port(struct __sk_buff *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct packet *packet = data;

	if (data + sizeof(*packet) > end)
		return TC_ACT_OK;
	return packet->ports[1] == bpf_htons(DROPPED_PORT) ? TC_ACT_SHOT : TC_ACT_OK;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct __sk_buff *));
} tested SEC(".maps") = {
	.values = { [0] = (void *)&drop_port },
};

SEC("tc/test/1_dropped/pktgen")
int make_dropped(struct __sk_buff *ctx)
{
	return make(ctx, DROPPED_PORT);
}

SEC("tc/test/1_dropped/setup")
int run_dropped(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &tested, 0);
	return ERROR;
}

SEC("tc/test/1_dropped/check")
int check_dropped(struct __sk_buff *ctx)
{
	if (ctx->mark != 7)
		return FAIL;
	return check_part(ctx, TC_ACT_SHOT);
}

// A static function is a program for Cilium's loader.
SEC("tc/test/2_passes/pktgen")
static int make_passing(struct __sk_buff *ctx)
{
	return make(ctx, DROPPED_PORT + 1);
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} calls SEC(".maps");

// The loader puts it into the map.
SEC("tc/tail")
__attribute__((btf_decl_tag("tail:calls/2")))
static int pass(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &tested, 0);
	return ERROR;
}

SEC("tc/test/2_passes/setup")
int run_passing(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &calls, 2);
	return ERROR;
}

// Expects what is not so, and says it in a result with a log.
SEC("tc/test/2_passes/check")
int check_passing(struct __sk_buff *ctx)
{
	static const __u8 said[] = {
		0x0a, 0x9f, 0x00,
		0x0a, 0x07, 'a', 'c', 't', 'i', 'o', 'n', 0,
		0x10, FAIL,
		0x1a, 0x12,
		0x0a, 0x07, 'i', 's', ' ', '%', 'l', 'u', 0,
		0x11, TC_ACT_OK, 0, 0, 0, 0, 0, 0, 0,
	};
	__u32 zero = 0;
	struct messages *messages = bpf_map_lookup_elem(&suite_result_map, &zero);

	if (!messages)
		return ERROR;
	if (check_part(ctx, TC_ACT_SHOT) == PASS)
		return PASS;
	__builtin_memcpy(messages->bytes, said, sizeof(said));
	return FAIL;
}

SEC("tc/test/3_skipped/check")
int check_skipped(struct __sk_buff *ctx)
{
	return SKIP;
}

SEC("xdp/test/4_xdp/setup")
int run_xdp(struct xdp_md *ctx)
{
	__u32 *mark;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*mark)))
		return ERROR;
	mark = (void *)(long)ctx->data_meta;
	if ((void *)(mark + 1) > (void *)(long)ctx->data)
		return ERROR;
	*mark = 7;
	return XDP_TX;
}

SEC("xdp/test/4_xdp/check")
int check_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 *status = data, *mark = status + 1;

	if ((void *)(mark + 1) > end)
		return ERROR;
	return *status == XDP_TX && *mark == 7 ? NEW_PASS : NEW_FAIL;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
