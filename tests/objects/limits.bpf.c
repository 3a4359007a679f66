// Limits that show at run time only: each program asks for too much and just enough of
// something, and writes down what it is told.
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

#define KEEP(x) asm volatile("" : "+r"(x))

// bpf_loop: 1 << 23 rounds, no flags.
static long stop_at(__u32 index, __u32 *last)
{
	return index >= *last;
}

SEC("tc")
int loops(struct __sk_buff *skb)
{
	__u32 last = 0, many = 100;

	tell(bpf_loop(0, stop_at, &last, 0));
	tell(bpf_loop(1 << 23, stop_at, &last, 0));
	tell(bpf_loop((1 << 23) + 1, stop_at, &last, 0));
	tell(bpf_loop(-1, stop_at, &last, 0));
	tell(bpf_loop(5, stop_at, &last, 1));
	tell(bpf_loop(-1, stop_at, &last, 1));
	tell(bpf_loop(50, stop_at, &many, 0));
	tell(bpf_loop(101, stop_at, &many, 0));
	tell(bpf_loop(102, stop_at, &many, 0));
	return 0;
}

// Eight frames, seven of them callbacks.
#define NESTED(name, next)                                                                         \
	static long name(__u32 index, __u64 *sum)                                                  \
	{                                                                                          \
		*sum = *sum * 3 + index;                                                           \
		bpf_loop(2, next, sum, 0);                                                         \
		return 0;                                                                          \
	}

static long innermost(__u32 index, __u64 *sum)
{
	*sum = *sum * 5 + index;
	return *sum % 4 == 3;
}

NESTED(n6, innermost)
NESTED(n5, n6)
NESTED(n4, n5)
NESTED(n3, n4)
NESTED(n2, n3)
NESTED(n1, n2)

SEC("tc")
int nested_callbacks(struct __sk_buff *skb)
{
	__u64 sum = 1;

	tell(bpf_loop(2, n1, &sum, 0));
	tell(sum);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

static __u8 bytes[8192];

// Dynptrs: sizes, offsets, flags.
SEC("tc")
int dynptrs(struct __sk_buff *skb)
{
	__u64 sizes[] = { 8, 4088, 4089, 1 << 24, (1 << 24) - 1, (__u32)-1 };
	struct bpf_dynptr ptr;
	char small[16] = {};
	int i;

	for (i = 0; i < 6; i++) {
		tell(bpf_ringbuf_reserve_dynptr(&ring, sizes[i], 0, &ptr));
		tell(bpf_dynptr_write(&ptr, 0, small, 8, 0));
		tell(bpf_dynptr_write(&ptr, 1, small, 8, 0));
		tell(bpf_dynptr_write(&ptr, 0, small, 0, 1));
		tell(bpf_dynptr_read(small, 8, &ptr, -1, 0));
		tell(bpf_dynptr_data(&ptr, 0, 9) != NULL);
		bpf_ringbuf_discard_dynptr(&ptr, BPF_RB_NO_WAKEUP);
	}
	tell(bpf_ringbuf_reserve_dynptr(&ring, 8, 1, &ptr));
	bpf_ringbuf_discard_dynptr(&ptr, 0);
	tell(bpf_dynptr_from_mem(bytes, 64, 0, &ptr));
	tell(bpf_dynptr_read(small, 16, &ptr, 48, 0));
	tell(bpf_dynptr_read(small, 16, &ptr, 49, 0));
	tell(bpf_dynptr_read(small, 0, &ptr, 64, 0));
	tell(bpf_dynptr_read(small, 0, &ptr, 65, 0));
	tell(bpf_dynptr_read(small, 8, &ptr, 0, 1));
	tell(bpf_dynptr_write(&ptr, 48, small, 16, 0));
	tell(bpf_dynptr_write(&ptr, 49, small, 16, 0));
	tell(bpf_dynptr_write(&ptr, 0, small, 8, 1));
	tell(bpf_dynptr_from_mem(bytes, 64, 1, &ptr));
	tell(bpf_dynptr_read(small, 1, &ptr, 0, 0));
	return 0;
}

// Numbers in text: bases, flags, what is too large, what is none.
#define NUMBER(text, flags)                                                                        \
	do {                                                                                       \
		static const char given[] = text;                                                  \
		long is = 99;                                                                      \
		unsigned long without = 99;                                                        \
                                                                                                   \
		tell(bpf_strtol(given, sizeof(given), flags, &is));                                \
		tell(is);                                                                          \
		tell(bpf_strtoul(given, sizeof(given), flags, &without));                          \
		tell(without);                                                                     \
	} while (0)

SEC("syscall")
int numbers(void *ctx)
{
	NUMBER("12", 0);
	NUMBER("  -12x", 10);
	NUMBER("0x1f", 0);
	NUMBER("0x1f", 16);
	NUMBER("0x1f", 10);
	NUMBER("017", 0);
	NUMBER("018", 8);
	NUMBER("12", 2);
	NUMBER("12", 32 + 10);
	NUMBER("12", 1ULL << 32);
	NUMBER("", 0);
	NUMBER("-", 0);
	NUMBER("9223372036854775807", 0);
	NUMBER("9223372036854775808", 0);
	return 0;
}

SEC("syscall")
int large_numbers(void *ctx)
{
	NUMBER("-9223372036854775808", 10);
	NUMBER("-9223372036854775809", 10);
	NUMBER("18446744073709551615", 10);
	NUMBER("18446744073709551616", 10);
	NUMBER("+5", 10);
	NUMBER("0000000000000000000000000000000000000000000000000000000000000000000000001", 10);
	NUMBER("0000000000000000000000000000000000000000000000000000000000000001", 10);
	NUMBER("                                                                        1", 10);
	NUMBER("ffffffffffffffff", 16);
	NUMBER("0x", 0);
	NUMBER("0", 0);
	NUMBER("\t\n 7\n", 0);
	return 0;
}

// Formatted text: what does not fit, how much there may be of it.
SEC("syscall")
int texts(void *ctx)
{
	static const char plain[] = "%d %s %%";
	static const char none[] = "";
	static const char twelve[] = "%d%d%d%d%d%d%d%d%d%d%d%d";
	char text[8] = {};
	__u64 args[12] = { 123456, (unsigned long)plain };
	__u64 numbers[12] = { 1, 2, 3 };

	tell(bpf_snprintf(text, sizeof(text), plain, args, 16));
	tell(text[6]);
	tell(text[7]);
	tell(bpf_snprintf(text, 1, plain, args, 16));
	tell(text[0]);
	tell(bpf_snprintf(NULL, 0, plain, args, 16));
	tell(bpf_snprintf(text, sizeof(text), none, NULL, 0));
	tell(bpf_snprintf(text, sizeof(text), twelve, numbers, 96));
	return 0;
}

// Checksums over sizes that are no multiple of four, and over much.
SEC("tc")
int checksums(struct __sk_buff *skb)
{
	__be32 *from = (void *)bytes;

	bytes[3] = 9;
	bytes[511] = 5;
	bytes[513] = 6;
	tell(bpf_csum_diff(NULL, 0, from, 4, 0));
	tell(bpf_csum_diff(from, 4, NULL, 0, 0));
	tell(bpf_csum_diff(from, 4, from, 4, 1));
	tell(bpf_csum_diff(NULL, 0, from, 3, 0));
	tell(bpf_csum_diff(from, 2, from, 4, 0));
	tell(bpf_csum_diff(NULL, 0, from, 512, 0));
	tell(bpf_csum_diff(NULL, 0, from, 516, 0));
	tell(bpf_csum_diff(from, 256, from + 64, 256, 7));
	tell(bpf_csum_diff(from, 256, from + 64, 260, 7));
	tell(bpf_csum_diff(from, 512, from, 516, 7));
	tell(bpf_csum_diff(NULL, 0, NULL, 0, 5));
	tell(bpf_csum_diff(NULL, 0, from, 0, 5));
	return 0;
}

// The iterator over numbers.
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

#define RANGE(from, to)                                                                            \
	do {                                                                                       \
		struct bpf_iter_num it;                                                            \
		int *next;                                                                         \
                                                                                                   \
		tell(bpf_iter_num_new(&it, from, to));                                             \
		next = bpf_iter_num_next(&it);                                                     \
		tell(next ? *next : -1000);                                                        \
		next = bpf_iter_num_next(&it);                                                     \
		tell(next ? *next : -1000);                                                        \
		bpf_iter_num_destroy(&it);                                                         \
	} while (0)

SEC("tc")
int ranges(struct __sk_buff *skb)
{
	RANGE(0, 2);
	RANGE(3, 3);
	RANGE(3, 2);
	RANGE(0, 1 << 23);
	RANGE(0, (1 << 23) + 1);
	RANGE(-(1 << 22), 1 << 22);
	RANGE(-2147483647 - 1, 2147483647);
	RANGE(2147483646, 2147483647);
	return 0;
}

// Timers: what comes too early, twice, or not at all.
struct timed {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct timed);
} timed SEC(".maps");

static int fired(void *map, __u32 *key, struct timed *value)
{
	return 0;
}

SEC("tc")
int timers(struct __sk_buff *skb)
{
	__u32 key = 0;
	struct timed *value = bpf_map_lookup_elem(&timed, &key);

	if (!value)
		return 1;
	tell(bpf_timer_start(&value->timer, 1000000000000, 0));
	tell(bpf_timer_set_callback(&value->timer, fired));
	tell(bpf_timer_cancel(&value->timer));
	tell(bpf_timer_init(&value->timer, &timed, 2));
	tell(bpf_timer_init(&value->timer, &timed, 16 + 1));
	tell(bpf_timer_init(&value->timer, &timed, 1));
	tell(bpf_timer_init(&value->timer, &timed, 1));
	tell(bpf_timer_start(&value->timer, 1000000000000, 0));
	tell(bpf_timer_cancel(&value->timer));
	tell(bpf_timer_set_callback(&value->timer, fired));
	tell(bpf_timer_start(&value->timer, 1000000000000, 4));
	tell(bpf_timer_start(&value->timer, 1000000000000, 0));
	tell(bpf_timer_cancel(&value->timer));
	tell(bpf_timer_cancel(&value->timer));
	return 0;
}

// Arrays of programs: places that are empty, past the end, or numbers of 64 bits.
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} programs SEC(".maps");

SEC("tc")
int no_programs(struct __sk_buff *skb)
{
	__u64 wide = 0x100000001;

	KEEP(wide);
	bpf_tail_call(skb, &programs, 0);
	tell(1);
	bpf_tail_call(skb, &programs, 2);
	tell(2);
	asm volatile("r1 = %[ctx]; r2 = %[map] ll; r3 = %[index]; call 12" ::[ctx] "r"(skb),
		     [map] "i"(&programs), [index] "r"(wide)
		     : "r0", "r1", "r2", "r3", "r4", "r5");
	tell(3);
	return 0;
}

// Text: how far functions look.
extern int bpf_strlen(const char *s) __ksym;
extern int bpf_strnlen(const char *s, __u64 count) __ksym;
extern int bpf_strcmp(const char *one, const char *two) __ksym;
extern int bpf_strchr(const char *s, char c) __ksym;
extern int bpf_strrchr(const char *s, int c) __ksym;
extern int bpf_strspn(const char *s, const char *accept) __ksym;
extern int bpf_strstr(const char *one, const char *two) __ksym;

char endless[70000];

SEC("syscall")
int strings(void *ctx)
{
	__u32 i;

	for (i = 0; i < 65535; i++)
		*(volatile char *)&endless[i & 0xffff] = 'x';
	tell(bpf_strlen(endless));
	tell(bpf_strnlen(endless, 65536));
	endless[65535] = 'x';
	tell(bpf_strlen(endless));
	tell(bpf_strnlen(endless, 100));
	tell(bpf_strnlen(endless, 65536));
	tell(bpf_strnlen(endless, 65537));
	tell(bpf_strchr(endless, 'y'));
	tell(bpf_strchr(endless, 0));
	tell(bpf_strrchr(endless, 'x'));
	tell(bpf_strcmp(endless, endless));
	tell(bpf_strspn(endless, "x"));
	tell(bpf_strstr(endless, "xy"));
	tell(bpf_strstr("abc", ""));
	tell(bpf_strcmp("a", "b"));
	tell(bpf_strcmp("b", "a"));
	tell(bpf_strlen(NULL));
	tell(bpf_strlen((void *)8));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
