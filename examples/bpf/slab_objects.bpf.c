// Which objects of the kernel's slab caches are not freed yet? A kprobe and a kretprobe on
// the allocation store each object with its cache and time, a kprobe on the free deletes it;
// each cache counts both. This is tracex4 of the kernel's samples.
//
// Before Linux 6.10 the allocation has no suffix: attach `enter` and `leave` to
// kmem_cache_alloc there.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"

struct kmem_cache {
	const char *name;
	unsigned int object_size;
} __attribute__((preserve_access_index));

// Threads in the allocation, with the cache that each allocates from.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} inside SEC(".maps");

struct object {
	__u64 cache;
	__u64 ns;
};

// Objects that are not freed yet, by their addresses.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct object);
} objects SEC(".maps");

struct cache {
	char name[24];
	__u64 size;
	__u64 allocated;
	__u64 freed;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u64);
	__type(value, struct cache);
} caches SEC(".maps");

// Objects that did not fit a map.
__u64 unseen;

SEC("kprobe/kmem_cache_alloc_noprof")
int BPF_KPROBE(enter, struct kmem_cache *cache)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 key = (__u64)cache;
	struct cache new = {};

	if (!bpf_map_lookup_elem(&caches, &key)) {
		bpf_probe_read_kernel_str(new.name, sizeof(new.name), BPF_CORE_READ(cache, name));
		new.size = BPF_CORE_READ(cache, object_size);
		bpf_map_update_elem(&caches, &key, &new, BPF_NOEXIST);
	}
	bpf_map_update_elem(&inside, &thread, &key, BPF_ANY);
	return 0;
}

SEC("kretprobe/kmem_cache_alloc_noprof")
int BPF_KRETPROBE(leave, void *allocated)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 *from = bpf_map_lookup_elem(&inside, &thread), key = (__u64)allocated;
	struct object object = {};
	struct cache *cache;

	// The thread entered the function before the probe was attached.
	if (!from)
		return 0;
	object.cache = *from;
	object.ns = bpf_ktime_get_ns();
	bpf_map_delete_elem(&inside, &thread);
	// No memory.
	if (!allocated)
		return 0;
	cache = bpf_map_lookup_elem(&caches, &object.cache);
	if (!cache || bpf_map_update_elem(&objects, &key, &object, BPF_ANY)) {
		__sync_fetch_and_add(&unseen, 1);
		return 0;
	}
	__sync_fetch_and_add(&cache->allocated, 1);
	return 0;
}

SEC("kprobe/kmem_cache_free")
int BPF_KPROBE(release, struct kmem_cache *from, void *freed)
{
	__u64 key = (__u64)freed;
	struct object *object = bpf_map_lookup_elem(&objects, &key);
	struct cache *cache;

	// Allocated before this program was attached, or by another function.
	if (!object)
		return 0;
	cache = bpf_map_lookup_elem(&caches, &object->cache);
	if (cache)
		__sync_fetch_and_add(&cache->freed, 1);
	bpf_map_delete_elem(&objects, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
