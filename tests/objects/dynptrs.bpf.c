// Dynamic pointers: to a record whose size is known at run time, to the program's own
// memory, to packets of both kinds.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

extern int bpf_dynptr_from_xdp(struct xdp_md *xdp, __u64 flags, struct bpf_dynptr *ptr) __ksym;
extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags, struct bpf_dynptr *ptr) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, __u32 offset, void *buffer,
			      __u32 buffer__szk) __ksym;
extern void *bpf_dynptr_slice_rdwr(const struct bpf_dynptr *ptr, __u32 offset, void *buffer,
				   __u32 buffer__szk) __ksym;
extern int bpf_dynptr_adjust(const struct bpf_dynptr *ptr, __u32 start, __u32 end) __ksym;
extern _Bool bpf_dynptr_is_null(const struct bpf_dynptr *ptr) __ksym;
extern _Bool bpf_dynptr_is_rdonly(const struct bpf_dynptr *ptr) __ksym;
extern __u32 bpf_dynptr_size(const struct bpf_dynptr *ptr) __ksym;
extern int bpf_dynptr_clone(const struct bpf_dynptr *ptr, struct bpf_dynptr *clone) __ksym;
extern int bpf_dynptr_copy(struct bpf_dynptr *dst, __u32 dst_off, struct bpf_dynptr *src,
			   __u32 src_off, __u32 size) __ksym;
extern int bpf_dynptr_memset(struct bpf_dynptr *ptr, __u32 offset, __u32 size, __u8 val) __ksym;
extern int bpf_probe_read_user_str_dynptr(struct bpf_dynptr *ptr, __u32 off, __u32 size,
					  const void *unsafe) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, char[32]);
} notes SEC(".maps");

// The first word of a record says how long it is; then come so many bytes.
SEC("raw_tp/sys_enter")
int record(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 size = ctx->args[0], length = 0;
	struct bpf_dynptr ptr;
	__u32 *head;
	long err;

	err = bpf_ringbuf_reserve_dynptr(&records, size, 0, &ptr);
	if (err) {
		bpf_ringbuf_discard_dynptr(&ptr, 0);
		return err;
	}
	head = bpf_dynptr_data(&ptr, 0, sizeof(*head));
	if (!head) {
		bpf_ringbuf_discard_dynptr(&ptr, 0);
		return -1;
	}
	*head = size;
	length = ctx->args[1];
	err = bpf_dynptr_write(&ptr, sizeof(*head), &length, sizeof(length), 0);
	if (err)
		bpf_ringbuf_discard_dynptr(&ptr, 0);
	else
		bpf_ringbuf_submit_dynptr(&ptr, 0);
	return err;
}

// Notes a user's string between two marks.
SEC("raw_tp/sys_enter")
int note(struct bpf_raw_tracepoint_args *ctx)
{
	struct bpf_dynptr ptr, inner;
	__u32 zero = 0;
	char *text;
	int len;

	text = bpf_map_lookup_elem(&notes, &zero);
	if (!text || bpf_dynptr_from_mem(text, 32, 0, &ptr))
		return -1;
	if (bpf_dynptr_memset(&ptr, 0, 32, '.') || bpf_dynptr_clone(&ptr, &inner))
		return -2;
	if (bpf_dynptr_adjust(&inner, 4, 16))
		return -3;
	len = bpf_probe_read_user_str_dynptr(&inner, 0, bpf_dynptr_size(&inner),
					     (void *)ctx->args[0]);
	if (len < 0)
		return len;
	if (bpf_dynptr_copy(&ptr, 20, &inner, 0, 4))
		return -4;
	return len;
}

static __always_inline int is_ipv4(struct bpf_dynptr *ptr)
{
	struct ethhdr buffer, *eth = bpf_dynptr_slice(ptr, 0, &buffer, sizeof(buffer));

	return eth && eth->h_proto == bpf_htons(ETH_P_IP);
}

// Takes one from the time to live, and drops what has none left.
SEC("xdp")
int forward(struct xdp_md *xdp)
{
	struct iphdr buffer, *ip;
	struct bpf_dynptr ptr;

	if (bpf_dynptr_from_xdp(xdp, 0, &ptr) || !is_ipv4(&ptr))
		return XDP_PASS;
	ip = bpf_dynptr_slice_rdwr(&ptr, sizeof(struct ethhdr), &buffer, sizeof(buffer));
	if (!ip)
		return XDP_ABORTED;
	if (ip->ttl <= 1)
		return XDP_DROP;
	ip->ttl--;
	if (ip == &buffer)
		bpf_dynptr_write(&ptr, sizeof(struct ethhdr), &buffer, sizeof(buffer), 0);
	return XDP_TX;
}

// The last byte of the packet, in its fragments or not.
SEC("xdp.frags")
int last_byte(struct xdp_md *xdp)
{
	struct bpf_dynptr ptr;
	__u8 byte = 0;

	if (bpf_dynptr_from_xdp(xdp, 0, &ptr))
		return -1;
	if (bpf_dynptr_read(&byte, 1, &ptr, bpf_dynptr_size(&ptr) - 1, 0))
		return -2;
	return byte;
}

// A socket filter sees the packet and does not change it.
SEC("socket")
int look(struct __sk_buff *skb)
{
	struct bpf_dynptr ptr;
	__u8 byte = 1;

	if (bpf_dynptr_from_skb(skb, 0, &ptr))
		return -1;
	if (!bpf_dynptr_is_rdonly(&ptr) || bpf_dynptr_is_null(&ptr))
		return -2;
	return bpf_dynptr_write(&ptr, 0, &byte, 1, 0);
}

// The Ethernet type of a packet on its way, as a tracing program finds it.
SEC("tp_btf/netif_receive_skb")
int ether_type(unsigned long long *ctx)
{
	struct __sk_buff *skb = (void *)ctx[0];
	struct bpf_dynptr ptr;
	__u8 type[2] = {};

	if (bpf_dynptr_from_skb(skb, 0, &ptr))
		return -1;
	if (bpf_dynptr_read(type, sizeof(type), &ptr, 12, 0))
		return -2;
	bpf_printk("%x%02x of %d bytes", type[0], type[1], bpf_dynptr_size(&ptr));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
