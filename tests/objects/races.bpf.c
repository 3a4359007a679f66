// What several CPUs do to one element at once, in all the ways in which the order makes a
// difference: tests/live/races.rs fires it from two threads, with numbers in the offset of
// lseek that say what is done to which element.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct trace_entry {
	unsigned short type;
} __attribute__((preserve_access_index));

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
} __attribute__((preserve_access_index));

// Two counters that lose some of what is added, as `+=` does.
__u64 all, odd;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} latest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

// Has no room for all keys.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} small SEC(".maps");

struct who {
	char comm[16];
	__u64 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct who);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} own SEC(".maps");

// A function of its own, or the compiler makes one call for both maps.
static __attribute__((noinline)) int fill(__u32 key, __u64 offset)
{
	if (offset & 32)
		bpf_map_update_elem(&small, &key, &offset, BPF_ANY);
	else
		bpf_map_delete_elem(&small, &key);
	return 0;
}

SEC("tp/syscalls/sys_enter_lseek")
int races(struct trace_event_raw_sys_enter *ctx)
{
	__u64 offset = ctx->args[1];
	__u32 key = offset & 3, what = offset >> 2 & 7, zero = 0, name = key & 1;
	__u64 *value;
	struct who *who;

	all += offset;
	if (offset & 1)
		odd++;
	value = bpf_map_lookup_elem(&own, &zero);
	if (value)
		*value += offset;

	switch (what) {
	case 0:
		value = bpf_map_lookup_elem(&latest, &key);
		if (value)
			*value = offset;
		break;
	case 1:
		value = bpf_map_lookup_elem(&latest, &key);
		if (value)
			__sync_fetch_and_add(value, offset);
		break;
	case 2:
		bpf_map_update_elem(&table, &key, &offset, BPF_ANY);
		break;
	case 3:
		bpf_map_update_elem(&table, &key, &offset, BPF_NOEXIST);
		break;
	case 4:
		bpf_map_delete_elem(&table, &key);
		break;
	case 5:
		value = bpf_map_lookup_elem(&table, &key);
		if (value)
			__sync_fetch_and_add(value, offset);
		break;
	case 6:
		fill(key, offset);
		break;
	default:
		who = bpf_map_lookup_elem(&names, &name);
		if (who) {
			bpf_get_current_comm(who->comm, sizeof(who->comm));
			who->number = offset;
		}
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
