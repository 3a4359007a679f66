// Atomic operations on a missing page of an arena: nothing is fetched, and the register that would
// get the old value keeps its own, all 64 bits of it.
// flags: -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BPF_MAP_TYPE_ARENA_ 33
#define __arena __attribute__((address_space(1)))

struct {
	__uint(type, BPF_MAP_TYPE_ARENA_);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
} arena SEC(".maps");

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, __u32 page_cnt,
					   int node_id, __u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, __u32 page_cnt) __ksym;

#define VALUE 0x1234567800000002ll

/* What r2 is after an operation on the missing page in r1. */
static __always_inline __u64 __arena *missing(void)
{
	__u64 __arena *page = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);

	bpf_arena_free_pages(&arena, page, 1);
	return page;
}

#define PROGRAM(name, operation) \
	SEC("syscall") \
	__u64 name(void *ctx) \
	{ \
		__u64 __arena *page = missing(); \
		__u64 result; \
\
		asm volatile("r1 = %[page];" \
			     "r1 = addr_space_cast(r1, 0, 1);" \
			     "r0 = %[value] ll;" \
			     "r2 = r0;" \
			     operation \
			     "%[result] = r2;" \
			     : [result] "=r"(result) \
			     : [page] "r"(page), [value] "i"(VALUE) \
			     : "r0", "r1", "r2", "memory"); \
		return result ^ result >> 32; \
	}

PROGRAM(exchanges, "w2 = xchg32_32(r1 + 0, w2);")
PROGRAM(exchanges_wide, "r2 = xchg_64(r1 + 0, r2);")
PROGRAM(adds, "w2 = atomic_fetch_add((u32 *)(r1 + 0), w2);")
PROGRAM(adds_wide, "r2 = atomic_fetch_add((u64 *)(r1 + 0), r2);")
PROGRAM(compares, "w0 = cmpxchg32_32(r1 + 0, w0, w2); r2 = r0;")
PROGRAM(compares_wide, "r0 = cmpxchg_64(r1 + 0, r0, r2); r2 = r0;")
/* load_acquire, which clang 19 does not know: 1, 2, 4 and 8 bytes. */
PROGRAM(acquires_8, ".byte 0xd3, 0x12, 0, 0, 0, 1, 0, 0;")
PROGRAM(acquires_16, ".byte 0xcb, 0x12, 0, 0, 0, 1, 0, 0;")
PROGRAM(acquires_32, ".byte 0xc3, 0x12, 0, 0, 0, 1, 0, 0;")
PROGRAM(acquires_64, ".byte 0xdb, 0x12, 0, 0, 0, 1, 0, 0;")

char LICENSE[] SEC("license") = "GPL";
