// What maps take and refuse at run time: flags, keys, how much there is room for. Each
// program writes down what it is told.
#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

// What was told, in order.
__u64 told[128];
__u32 times;

static __always_inline void tell(long what)
{
	if (times < 128)
		told[times++] = what;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} lru SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} cpu_array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} cpu_hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 2);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, 8);
	__uint(value_size, 8);
} trie SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 2);
	__type(value, __u64);
} queue SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 2);
	__type(value, __u64);
} stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

// Every kind of map: keys in and out of range, each flag, and one that is none.
static __always_inline void update_all(void *map, __u32 prefix)
{
	__u64 flags[] = { BPF_ANY, BPF_NOEXIST, BPF_EXIST, BPF_NOEXIST | BPF_EXIST, 8, 1ULL << 32 };
	__u64 value = 7;
	int i;

#pragma unroll
	for (i = 0; i < 6; i++) {
		__u32 key[2] = { prefix, 0 };

		key[prefix ? 1 : 0] = 1;
		tell(bpf_map_update_elem(map, key, &value, flags[i]));
		key[prefix ? 1 : 0] = 2 + i;
		tell(bpf_map_update_elem(map, key, &value, flags[i]));
	}
	{
		__u32 key[2] = { prefix, 0 };

		key[prefix ? 1 : 0] = 1;
		tell(bpf_map_delete_elem(map, key));
		tell(bpf_map_delete_elem(map, key));
		key[prefix ? 1 : 0] = 100;
		tell(bpf_map_delete_elem(map, key));
	}
}

#define UPDATES(map, prefix)                                                                       \
	SEC("tc")                                                                                  \
	int updates_of_##map(struct __sk_buff *skb)                                                \
	{                                                                                          \
		update_all(&map, prefix);                                                          \
		return 0;                                                                          \
	}

UPDATES(array, 0)
UPDATES(hash, 0)
UPDATES(lru, 0)
UPDATES(cpu_array, 0)
UPDATES(cpu_hash, 0)
UPDATES(trie, 64)

// Longer prefixes than keys have.
SEC("tc")
int prefixes(struct __sk_buff *skb)
{
	__u32 lengths[] = { 0, 31, 32, 33, -1 };
	__u64 value = 1;
	int i;

	for (i = 0; i < 5; i++) {
		__u32 key[2] = { lengths[i], 0x01020304 };

		tell(bpf_map_update_elem(&trie, key, &value, BPF_ANY));
		tell(bpf_map_lookup_elem(&trie, key) != NULL);
		tell(bpf_map_delete_elem(&trie, key));
	}
	return 0;
}

// Queues and stacks, empty, full and overwritten.
static __always_inline void push_all(void *map)
{
	__u64 flags[] = { BPF_ANY, BPF_NOEXIST, BPF_EXIST, 3, 4, 1ULL << 32 };
	__u64 value = 0;
	int i;

	tell(bpf_map_pop_elem(map, &value));
	tell(bpf_map_peek_elem(map, &value));
#pragma unroll
	for (i = 0; i < 6; i++) {
		value = i;
		tell(bpf_map_push_elem(map, &value, flags[i]));
	}
	for (i = 0; i < 4; i++) {
		value = 10 + i;
		tell(bpf_map_push_elem(map, &value, i & 1 ? BPF_EXIST : BPF_ANY));
		tell(bpf_map_peek_elem(map, &value));
		tell(value);
	}
	for (i = 0; i < 3; i++) {
		tell(bpf_map_pop_elem(map, &value));
		tell(value);
	}
}

SEC("tc")
int queues(struct __sk_buff *skb)
{
	push_all(&queue);
	return 0;
}

SEC("tc")
int stacks(struct __sk_buff *skb)
{
	push_all(&stack);
	return 0;
}

// bpf_for_each_map_elem: flags, an early end, elements that go and come on the way.
struct walk {
	void *map;
	__u32 rounds, stop;
};

static long look(void *map, __u32 *key, __u64 *value, struct walk *walk)
{
	walk->rounds++;
	return walk->rounds == walk->stop;
}

static long outer(void *map, __u32 *key, __u64 *value, struct walk *walk)
{
	tell(bpf_for_each_map_elem(&array, look, walk, 0));
	return 0;
}

SEC("tc")
int walks(struct __sk_buff *skb)
{
	struct walk walk = {};
	__u32 key;
	__u64 value = 3;

	tell(bpf_for_each_map_elem(&array, look, &walk, 0));
	tell(bpf_for_each_map_elem(&array, look, &walk, 1));
	walk.stop = walk.rounds + 2;
	tell(bpf_for_each_map_elem(&array, look, &walk, 0));
	tell(bpf_for_each_map_elem(&cpu_array, look, &walk, 0));
	tell(bpf_for_each_map_elem(&hash, look, &walk, 0));
	key = 5;
	bpf_map_update_elem(&hash, &key, &value, BPF_ANY);
	walk.stop = 0;
	tell(bpf_for_each_map_elem(&hash, look, &walk, 0));
	tell(bpf_for_each_map_elem(&hash, outer, &walk, 0));
	tell(walk.rounds);
	return 0;
}

// A ring buffer of one page: the largest record, flags, how many small ones it takes.
static __u8 bytes[8192];

SEC("tc")
int records(struct __sk_buff *skb)
{
	int i;
	void *record;

	tell(bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE));
	tell(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	tell(bpf_ringbuf_query(&ring, 4));
	tell(bpf_ringbuf_query(&ring, 1ULL << 32));
#define TRY(size, flags)                                                                           \
	record = bpf_ringbuf_reserve(&ring, size, flags);                                          \
	tell(record != NULL);                                                                      \
	if (record)                                                                                \
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);

	TRY(4097, 0)
	TRY(4089, 0)
	TRY(1 << 30, 0)
	TRY((1 << 30) - 1, 0)
	TRY(8, 1)
	TRY(8, 1ULL << 32)
	tell(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	tell(bpf_ringbuf_output(&ring, bytes, 8, 4));
	tell(bpf_ringbuf_output(&ring, bytes, 8, 1ULL << 32));
	tell(bpf_ringbuf_output(&ring, bytes, 4096, 0));
	tell(bpf_ringbuf_output(&ring, bytes, 4089, 0));
	tell(bpf_ringbuf_output(&ring, bytes, 0, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_query(&ring, BPF_RB_PROD_POS));
	for (i = 0; i < 100; i++)
		if (bpf_ringbuf_output(&ring, bytes, 49, BPF_RB_NO_WAKEUP))
			break;
	tell(i);
	tell(bpf_ringbuf_output(&ring, bytes, 49, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	tell(bpf_ringbuf_query(&ring, BPF_RB_PROD_POS));
	tell(bpf_ringbuf_query(&ring, BPF_RB_CONS_POS));
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8192);
} ring_of_two SEC(".maps");

// The largest records that there are room for.
SEC("tc")
int large_records(struct __sk_buff *skb)
{
	tell(bpf_ringbuf_output(&ring, bytes, 4088, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_output(&ring, bytes, 0, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	tell(bpf_ringbuf_output(&ring_of_two, bytes, 4072, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_output(&ring_of_two, bytes, 4096, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_output(&ring_of_two, bytes, 4081, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_output(&ring_of_two, bytes, 4080, BPF_RB_NO_WAKEUP));
	tell(bpf_ringbuf_query(&ring_of_two, BPF_RB_AVAIL_DATA));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
