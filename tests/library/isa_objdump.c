// Code of every kind that clang makes, for tests/library/isa_objdump.rs. The text beside it:
// clang-19 -target bpf -mcpu=v4 -O2 -c tests/library/isa_objdump.c -o isa.o
// llvm-objdump-19 -dr --mcpu=v4 isa.o > tests/library/isa_objdump.txt
typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

u64 load_byte(void *skb, u64 off) asm("llvm.bpf.load.byte");
u64 load_half(void *skb, u64 off) asm("llvm.bpf.load.half");
u64 load_word(void *skb, u64 off) asm("llvm.bpf.load.word");

static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static s64 (*bpf_loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
extern u64 elsewhere(u64 value);

int seen;
static const u64 powers[] = {1, 10, 100, 1000};

static __attribute__((noinline)) u64 mix(u64 a, u64 b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ULL;
}

s64 callback(u64 index, u64 *sum)
{
	*sum += index;
	return index > 7;
}

u64 arithmetic(u64 a, s64 b, u32 c, s32 d, s16 e)
{
	u64 sum = a / (c | 1) + a % ((u64)d | 1) - (a << (c & 63)) + (b >> 3) + (a >> (d & 63));

	sum += c / 3 + (c << d) + (d >> 2) + e + (s8)a;
	sum |= 0x123456789abcULL;
	sum &= ~(u64)c;
	sum = -sum;
#if __BPF_CPU_VERSION__ >= 4
	sum += b / 7 + b % (d | 1) + d / 7 + d % 3;
#endif
	return sum + __builtin_bswap16(c) + __builtin_bswap32(d) + __builtin_bswap64(a);
}

u64 memory(u8 *b, u16 *h, u32 *w, u64 *d)
{
	*b = 1;
	*h = *b;
	*w = 0x80000000;
	*d = -5;
	d[-2] = *w;
	return (s8)b[7] + (s16)h[7] + (s32)w[7] + d[3];
}

u64 control(s64 *values, u64 count, s64 limit)
{
	u64 sum = 0, index;

	for (index = 0; index < count; index++) {
		s64 value = values[index];

		if (value > limit)
			sum = mix(sum, value);
		else if (value <= -3 && (u32)value != 0x80000000)
			sum = elsewhere(sum);
		else if ((s32)value < 9 || value & 0x10)
			sum += bpf_ktime_get_ns();
		if ((s8)value == -5)
			sum ^= powers[value & 3];
	}
	bpf_loop(count, callback, &sum, 0);
	seen = sum;
	return sum;
}

u64 indirect(u64 (*function)(u64), u64 value)
{
	return function(value) + 1;
}

u64 packet(void *skb)
{
	return load_byte(skb, 12) + load_half(skb, 14) + load_word(skb, load_byte(skb, 3));
}

u64 atomics(u64 *d, u32 *w, u64 value)
{
	__sync_fetch_and_add(d, value);
#if __BPF_CPU_VERSION__ >= 3
	__sync_fetch_and_or(d, value);
	__sync_fetch_and_and(w, value);
	value += __sync_fetch_and_add(d + 1, value);
	value += __sync_fetch_and_xor(w, 3);
	value += __sync_lock_test_and_set(w, 9);
	value += __sync_lock_test_and_set(d, 9);
	value += __sync_val_compare_and_swap(w, 2, 3);
	value += __sync_val_compare_and_swap(d, 2, value);
#endif
	return value;
}
