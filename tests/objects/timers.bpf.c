// Timers in the values of a hash and of an array: made ready, started, cancelled one
// call at a time, as the request says; what callbacks may do.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define CLOCK_MONOTONIC 1

struct session {
	__u64 fired;
	__u64 last;
	__u64 period;
	__u64 rounds;
	__s64 said;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct session);
	__uint(max_entries, 16);
} sessions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct session);
	__uint(max_entries, 4);
} slots SEC(".maps");

enum what { INIT, SET_COUNTING, SET_CANCELLING, SET_DELETING, START, CANCEL };

struct request {
	__u32 what;
	__u32 key;
	__u64 ns;
	__u64 flags;
	__u64 in_array;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct request);
	__uint(max_entries, 1);
} requests SEC(".maps");

static int count_expiry(void *map, __u32 *key, struct session *session)
{
	session->fired++;
	session->last = bpf_ktime_get_ns();
	if (session->fired < session->rounds)
		bpf_timer_start(&session->timer, session->period, 0);
	bpf_printk("%d fired", *key);
	return 0;
}

static int cancel_itself(void *map, __u32 *key, struct session *session)
{
	session->fired++;
	session->said = bpf_timer_cancel(&session->timer);
	return 0;
}

static int delete_itself(void *map, __u32 *key, struct session *session)
{
	session->fired++;
	bpf_map_delete_elem(map, key);
	session->said = bpf_timer_start(&session->timer, 1, 0);
	return 0;
}

static __always_inline long act(struct request *request, void *map, struct session *session)
{
	switch (request->what) {
	case INIT:
		return bpf_timer_init(&session->timer, map, request->flags);
	case SET_COUNTING:
		return bpf_timer_set_callback(&session->timer, count_expiry);
	case SET_CANCELLING:
		return bpf_timer_set_callback(&session->timer, cancel_itself);
	case START:
		return bpf_timer_start(&session->timer, request->ns, request->flags);
	case CANCEL:
		return bpf_timer_cancel(&session->timer);
	default:
		return -1;
	}
}

SEC("tc")
int timer(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct request *request = bpf_map_lookup_elem(&requests, &zero);
	struct session *session;

	if (!request)
		return -2;
	if (request->in_array) {
		session = bpf_map_lookup_elem(&slots, &request->key);
		return session ? act(request, &slots, session) : -2;
	}
	session = bpf_map_lookup_elem(&sessions, &request->key);
	if (!session)
		return -2;
	if (request->what == SET_DELETING)
		return bpf_timer_set_callback(&session->timer, delete_itself);
	return act(request, &sessions, session);
}

// As programs do it: all at once, for a key that the packet's mark names.
SEC("tc")
int track(struct __sk_buff *skb)
{
	struct session fresh = {}, *session;
	__u32 key = skb->mark;

	bpf_map_update_elem(&sessions, &key, &fresh, BPF_NOEXIST);
	session = bpf_map_lookup_elem(&sessions, &key);
	if (!session)
		return 1;
	bpf_timer_init(&session->timer, &sessions, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&session->timer, delete_itself);
	return bpf_timer_start(&session->timer, 30000000000ULL, 0);
}

char LICENSE[] SEC("license") = "GPL";
