// One source for each version of the instruction set: 32-bit jumps and arithmetic,
// signed division, sign extension, byte swaps and atomics that fetch, as far as the
// version has them. Each must compute the same.
//
// build v1: -mcpu=v1
// build v2: -mcpu=v2
// build v3: -mcpu=v3
// build v4: -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__s64 a = -1234567, b = 1000;
__s32 narrow = -77;
__s16 tiny = -3;
__u64 swapped, quotient, sum, counter;

SEC("syscall")
int compute(void *ctx)
{
	__s64 x = a, y = b;
	__s32 n = narrow;

	sum = x + y + n + tiny;
	quotient = (__u64)x / 10;
#if __BPF_CPU_VERSION__ >= 4
	sum += x / y - (x / y);
#endif
	swapped = __builtin_bswap64(x) ^ __builtin_bswap32(n);
	if (n < 0 && (__u32)n > 100)
		sum += (__u32)n >> 3;
	__sync_fetch_and_add(&counter, sum);
	return (sum ^ quotient ^ swapped) & 0x7fffffff;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
