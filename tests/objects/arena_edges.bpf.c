// Accesses at the edges of an arena's pages: across two pages, on a missing one, before the
// first and behind the last; all sizes, atomic operations, null pointers, a loop.
// flags: -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BPF_MAP_TYPE_ARENA_ 33
#define PAGE 4096
#define PAGES 4
#define __arena __attribute__((address_space(1)))

struct {
	__uint(type, BPF_MAP_TYPE_ARENA_);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PAGES);
} arena SEC(".maps");

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, __u32 page_cnt,
					   int node_id, __u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, __u32 page_cnt) __ksym;

typedef unsigned char byte;

/* So that clang does not know what memory holds. */
#define OPAQUE(x) asm volatile("" : "+r"(x))
#define AT(type, p, off) (*(volatile type __arena *)((byte __arena *)(p) + (off)))

static __always_inline byte __arena *pages(int count)
{
	return bpf_arena_alloc_pages(&arena, 0, count, -1, 0);
}

static __always_inline long released(byte __arena *p, int count, long result)
{
	bpf_arena_free_pages(&arena, p, count);
	return result;
}

SEC("syscall")
int sizes(void *ctx)
{
	byte __arena *p = pages(1);
	long sum;

	if (!p)
		return -1;
	AT(__u64, p, 8) = 0x8182838485868788ull;
	sum = AT(__u8, p, 8) + AT(__u16, p, 9) + AT(__u32, p, 11);
	sum += AT(signed char, p, 15) + AT(short, p, 13) + AT(int, p, 12);
	AT(__u8, p, 16) = 1;
	AT(__u16, p, 17) = 2;
	AT(__u32, p, 19) = 3;
	sum += AT(__u64, p, 16) % 1000;
	return released(p, 1, sum & 0x7fffffff);
}

/* Both pages are there. */
SEC("syscall")
int across(void *ctx)
{
	byte __arena *p = pages(2);
	long sum = 0;

	if (!p)
		return -1;
	AT(__u64, p, PAGE - 4) = 0x0102030405060708ull;
	AT(__u16, p, PAGE - 1) += 256;
	sum = AT(__u32, p, PAGE) + AT(__u32, p, PAGE - 4) + AT(__u32, p, PAGE - 2);
	return released(p, 2, sum & 0x7fffffff);
}

/* The second page is missing: nothing is stored, not even to the first. */
SEC("syscall")
int half_missing(void *ctx)
{
	byte __arena *p = pages(2);
	long sum;

	if (!p)
		return -1;
	AT(__u32, p, PAGE - 4) = 77;
	bpf_arena_free_pages(&arena, p + PAGE, 1);
	AT(__u64, p, PAGE - 4) = -1;
	AT(__u16, p, PAGE - 1) = -1;
	sum = AT(__u64, p, PAGE - 4) * 1000 + AT(__u16, p, PAGE - 1) * 100;
	sum += AT(__u32, p, PAGE - 4);
	return released(p, 1, sum);
}

SEC("syscall")
int outside(void *ctx)
{
	byte __arena *p = pages(PAGES);
	long before = 5, behind = 6;

	if (!p)
		return -1;
	AT(__u64, p, -8) = 1;
	AT(__u64, p, PAGES * PAGE) = 1;
	before = AT(__u64, p, -8);
	behind = AT(__u64, p, PAGES * PAGE) + AT(__u64, p, PAGES * PAGE - 4);
	AT(__u64, p, PAGES * PAGE - 8) = 9;
	return released(p, PAGES, before * 100 + behind * 10 + AT(__u64, p, PAGES * PAGE - 8));
}

SEC("syscall")
int atomics(void *ctx)
{
	byte __arena *p = pages(2);
	volatile int __arena *word = (volatile int __arena *)p;
	volatile long __arena *wide = (volatile long __arena *)(p + 8);
	long sum = 0;

	if (!p)
		return -1;
	sum += __sync_fetch_and_add(word, 5);
	__sync_fetch_and_or(word, 24);
	__sync_fetch_and_and(word, 28);
	__sync_fetch_and_xor(word, 3);
	sum = sum * 7 + *word;
	sum = sum * 7 + __sync_lock_test_and_set(word, 40);
	sum = sum * 7 + __sync_val_compare_and_swap(word, 40, 41);
	sum = sum * 7 + __sync_val_compare_and_swap(word, 40, 42);
	sum = sum * 7 + *word;
	sum = sum * 7 + __sync_fetch_and_add(wide, 6);
	sum = sum * 7 + __sync_val_compare_and_swap(wide, 6, 8);
	__sync_fetch_and_add(wide, 1);
	sum = sum * 7 + *wide;
	return released(p, 2, sum % 1000003);
}

/* An atomic operation on a missing page does nothing. */
SEC("syscall")
int atomics_missing(void *ctx)
{
	byte __arena *p = pages(1);
	volatile long __arena *wide = (volatile long __arena *)p;

	if (!p)
		return -1;
	bpf_arena_free_pages(&arena, p, 1);
	__sync_fetch_and_add(wide, 3);
	return *wide;
}

byte __arena *kept;

SEC("syscall")
int casts(void *ctx)
{
	byte __arena *p = pages(1);
	byte __arena *__arena *in_arena = (byte __arena *__arena *)p;
	long result = 0;

	if (!p)
		return -1;
	kept = p;
	result += kept == p;
	p[0x20] = 4;
	result += kept[0x20];
	*in_arena = p + 0x20;
	result = result * 10 + **in_arena;
	*in_arena = 0;
	kept = *in_arena;
	result = result * 10 + (kept == 0);
	return released(p, 1, result);
}

SEC("syscall")
int loop(void *ctx)
{
	byte __arena *p = pages(2);
	long sum = 0;
	int i;

	if (!p)
		return -1;
	for (i = 0; i < 2 * PAGE; i += 2) {
		volatile short __arena *at = (volatile short __arena *)(p + i);

		*at = i;
		sum += *at;
	}
	OPAQUE(sum);
	return released(p, 2, sum);
}

char LICENSE[] SEC("license") = "GPL";
