// What a program reads of a map's own structure in the kernel, through a map pointer.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct bpf_map {
	__u32 id;
	enum bpf_map_type map_type;
	__u32 key_size;
	__u32 value_size;
	__u32 max_entries;
	__u32 map_flags;
	char name[16];
} __attribute__((preserve_access_index));

struct bpf_htab {
	struct bpf_map map;
	__u32 n_buckets;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 6);
	__type(key, __u32);
	__type(value, __u64);
} fields SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 300);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, 12);
	__uint(value_size, 20);
} counters SEC(".maps");

static __always_inline void store(__u32 at, __u64 number)
{
	bpf_map_update_elem(&fields, &at, &number, BPF_ANY);
}

SEC("syscall")
int read_fields(void *ctx)
{
	struct bpf_htab *htab = (void *)&counters;
	struct bpf_map *map = &htab->map;

	store(0, map->map_type);
	store(1, map->key_size);
	store(2, map->value_size);
	store(3, map->max_entries);
	store(4, map->map_flags);
	store(5, map->id);
	// No attribute of the map.
	return map->name[0] << 8 | htab->n_buckets;
}

char LICENSE[] SEC("license") = "GPL";
