// Uninitialised bytes that leave a program, one way in each program, and programs from which
// none leave.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct event {
	__u64 when;
	__u8 comm_len;
	__u32 pid;
	char comm[16];
	__u16 port;
};

struct key {
	__u8 proto;
	__u32 address;
};

struct flags {
	__u8 urgent : 1;
	__u8 level : 3;
	__u8 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct key);
	__type(value, struct event);
} by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct event);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flags);
} bits SEC(".maps");

const struct event *keep_type_event __attribute__((unused));

static __always_inline void fill(struct event *event)
{
	event->when = 1;
	event->comm_len = 2;
	event->pid = 3;
	event->port = 4;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
}

// The padding of a reserved record.
SEC("raw_tp")
int record_padding(void *ctx)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 1;
	fill(event);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

// A field that is never written, and a string that is shorter than its field.
SEC("raw_tp")
int record_fields(void *ctx)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	static const char text[] = "abc";

	if (!event)
		return 1;
	__builtin_memset(event, 0, 16);
	event->port = 4;
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), text);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

// A record that is discarded, and one that is zeroed first.
SEC("raw_tp")
int record_clean(void *ctx)
{
	struct event *dropped = bpf_ringbuf_reserve(&events, sizeof(*dropped), 0);
	struct event *event;

	if (!dropped)
		return 1;
	bpf_ringbuf_discard(dropped, 0);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return 1;
	__builtin_memset(event, 0, sizeof(*event));
	fill(event);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

// The padding of a structure on the stack.
SEC("raw_tp")
int perf_padding(void *ctx)
{
	struct event event;

	fill(&event);
	bpf_perf_event_output(ctx, &samples, BPF_F_CURRENT_CPU, &event, sizeof(event));
	return 0;
}

// A key with padding, in an update and a look-up.
SEC("raw_tp")
int key_padding(void *ctx)
{
	struct event event = {};
	struct key key;

	key.proto = 6;
	key.address = 7;
	fill(&event);
	bpf_map_update_elem(&by_key, &key, &event, BPF_ANY);
	return !bpf_map_lookup_elem(&by_key, &key);
}

// An update that fails: nothing leaves but the key.
SEC("raw_tp")
int update_fails(void *ctx)
{
	__u32 key = 99;
	struct event event;

	fill(&event);
	return bpf_map_update_elem(&slots, &key, &event, BPF_ANY) < 0;
}

// A structure with padding that is copied into a map's value by stores.
SEC("raw_tp")
int value_copied(void *ctx)
{
	__u32 key = 1;
	struct event event;
	struct event *value = bpf_map_lookup_elem(&slots, &key);

	if (!value)
		return 1;
	fill(&event);
	*value = event;
	return 0;
}

// Through another function's frame and spilled registers.
static __attribute__((noinline)) int copy(struct event *to, const struct event *from)
{
	if (!to || !from)
		return 1;
	*to = *from;
	return 0;
}

SEC("raw_tp")
int through_function(void *ctx)
{
	struct event first, second;

	__builtin_memset(&first, 0, sizeof(first));
	fill(&second);
	copy(&first, &second);
	bpf_perf_event_output(ctx, &samples, BPF_F_CURRENT_CPU, &first, sizeof(first));
	return 0;
}

// Bitfields that are set one by one in memory that was never written: all bits are defined.
SEC("raw_tp")
int bitfields_clean(void *ctx)
{
	struct flags flags;
	__u32 key = 0;

	__builtin_memset(&flags, 0, sizeof(flags));
	flags.urgent = 1;
	flags.level = 5;
	bpf_map_update_elem(&bits, &key, &flags, BPF_ANY);
	return 0;
}

// A callback fills the structure of the function around it.
struct loop {
	struct key key;
};

static long set_key(__u32 index, struct loop *loop)
{
	if (index == 0)
		loop->key.proto = 6;
	else
		loop->key.address = 7;
	return 0;
}

SEC("raw_tp")
int in_callback(void *ctx)
{
	struct event event = {};
	struct loop loop;

	bpf_loop(2, set_key, &loop, 0);
	bpf_map_update_elem(&by_key, &loop.key, &event, BPF_ANY);
	return 0;
}

// A record behind a dynptr.
SEC("raw_tp")
int record_dynptr(void *ctx)
{
	struct bpf_dynptr ptr;
	struct key key;

	key.proto = 6;
	key.address = 7;
	bpf_ringbuf_reserve_dynptr(&events, 12, 0, &ptr);
	bpf_dynptr_write(&ptr, 0, &key, sizeof(key), 0);
	bpf_ringbuf_submit_dynptr(&ptr, 0);
	return 0;
}

// Into the packet, by a helper and by a store.
SEC("tc")
int to_packet(struct __sk_buff *skb)
{
	struct key key;

	key.proto = 6;
	key.address = 7;
	return bpf_skb_store_bytes(skb, 0, &key, sizeof(key), 0);
}

char LICENSE[] SEC("license") = "GPL";
