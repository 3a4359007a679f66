// Accesses to an arena: sign-extending loads, atomics, arithmetic, functions.
// flags: -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BPF_MAP_TYPE_ARENA_ 33
#define __arena __attribute__((address_space(1)))
#define __arg_arena __attribute__((btf_decl_tag("arg:arena")))

struct {
	__uint(type, BPF_MAP_TYPE_ARENA_);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
} arena SEC(".maps");

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, __u32 page_cnt,
					   int node_id, __u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, __u32 page_cnt) __ksym;

struct data {
	int a;
	short b;
	signed char c;
	long d;
};

static __always_inline struct data __arena *page(void)
{
	return bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);
}

SEC("syscall")
int signed_loads(void *ctx)
{
	struct data __arena *data = page();

	if (!data)
		return 1;
	data->a = -4;
	data->b = -5;
	data->c = -6;
	return (long)data->a + (long)data->b + (long)data->c; /* -15 */
}

SEC("syscall")
int atomics(void *ctx)
{
	struct data __arena *data = page();
	long old;

	if (!data)
		return 1;
	old = __sync_fetch_and_add(&data->d, 5);
	old = old * 10 + __sync_val_compare_and_swap(&data->d, 5, 9);
	return old * 10 + data->d; /* 59 */
}

/* The page is missing: loads read 0, stores do nothing. */
SEC("syscall")
int freed(void *ctx)
{
	struct data __arena *data = page();

	if (!data)
		return 1;
	data->a = 4;
	bpf_arena_free_pages(&arena, data, 1);
	data->d = 7;
	return data->a + data->d;
}

static __noinline int first(struct data __arena *data)
{
	return data->a;
}

__noinline int any(struct data __arena *data __arg_arena)
{
	return data ? data->a : 30;
}

SEC("syscall")
int functions(void *ctx)
{
	struct data __arena *data = page();

	if (!data)
		return 1;
	data->a = 3;
	return first(data) + any(data) + any(0); /* 36 */
}

/* Any arithmetic: only the low 32 bits count. */
SEC("syscall")
int arithmetic(void *ctx)
{
	struct data __arena *data = page();
	__u64 number;

	if (!data)
		return 1;
	data->a = 8;
	number = (__u64)(void *)data;
	asm volatile("%0 += %1" : "+r"(number) : "r"(1ull << 40));
	return *(int *)number; /* 8 */
}

char LICENSE[] SEC("license") = "GPL";
