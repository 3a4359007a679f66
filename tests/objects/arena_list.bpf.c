// A list in an arena that programs and user space share.
// flags: -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BPF_MAP_TYPE_ARENA_ 33
#define __ulong(name, val) enum { ___bpf_concat(__unique_value, __COUNTER__) = val } name
#define __arena __attribute__((address_space(1)))

struct {
	__uint(type, BPF_MAP_TYPE_ARENA_);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16);
	__ulong(map_extra, 1ull << 44);
} arena SEC(".maps");

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, __u32 page_cnt,
					   int node_id, __u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, __u32 page_cnt) __ksym;

struct node {
	struct node __arena *next;
	__u64 value;
};

struct node __arena *head __attribute__((address_space(1))) = 0;
int __arena factor = 3;

__u64 sum, seen;

// Puts a page with a node in front.
SEC("syscall")
int push(__u64 *ctx)
{
	struct node __arena *node = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);

	if (!node)
		return 1;
	node->value = *ctx * factor;
	node->next = head;
	head = node;
	return 0;
}

// Adds all values up.
SEC("syscall")
int walk(void *ctx)
{
	struct node __arena *node = head;

	sum = 0;
	seen = 0;
	for (int i = 0; i < 100 && node; i++) {
		sum += node->value;
		seen++;
		node = node->next;
	}
	return 0;
}

// Takes the first node away, and reads it all the same.
SEC("syscall")
int pop(void *ctx)
{
	struct node __arena *node = head;

	if (!node)
		return 1;
	head = node->next;
	bpf_arena_free_pages(&arena, node, 1);
	*(volatile __u64 __arena *)&node->value = 1;
	return *(volatile __u64 __arena *)&node->value;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
