// Shared by the benchmark programs. Each has one body, a `static inline` function of a
// pointer and a length; the wrappers below make three programs of it:
//
//   Linux   a tc program NAME, on its packet or on the global array `memory`
//   flat    NAME_flat for virtual machines without contexts and maps: r1 points to the
//           memory, r2 is its length
//   native  a C function NAME, for `cc`
//
// The length is read-only data: verifiers know it, compilers don't.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Aligned numbers in memory.
typedef u16 __attribute__((may_alias)) in_memory16;
typedef u32 __attribute__((may_alias)) in_memory32;
typedef u64 __attribute__((may_alias)) in_memory64;
#define LOAD16(at) (*(const in_memory16 *)(at))
#define LOAD32(at) (*(const in_memory32 *)(at))
#define LOAD64(at) (*(const in_memory64 *)(at))
#define STORE64(at, value) (*(in_memory64 *)(at) = (value))

#define INLINED static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 32")
#endif

#define ROTATE_LEFT(x, n) ((x) << (n) | (x) >> (8 * sizeof(x) - (n)))

// Folds 64 bits into the 32 that a program returns, so that each bit is checked.
#define FOLD(x) ({ u64 whole = (x); (u32)(whole ^ whole >> 32); })

#ifdef __bpf__

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define OUTLINED __attribute__((noinline))

#define FLAT(name)                                                                       \
	SEC("?tc")                                                                      \
	u64 name##_flat(u8 *memory_, u64 length_)                                        \
	{                                                                                \
		return FOLD(name##_body(memory_, length_));                              \
	}

// The input is the packet, which has `size` bytes.
#define ON_PACKET(name, size)                                                            \
	const volatile u32 length = (size);                                              \
	SEC("tc")                                                                       \
	int name(struct __sk_buff *ctx)                                                     \
	{                                                                                \
		u8 *packet = (u8 *)(long)ctx->data;                                      \
                                                                                         \
		if (packet + (size) > (u8 *)(long)ctx->data_end)                         \
			return 0;                                                        \
		return FOLD(name##_body(packet, length));                                \
	}                                                                                \
	FLAT(name)

// The input is a global array of `size` bytes.
#define ON_MEMORY(name, size)                                                            \
	const volatile u32 length = (size);                                              \
	u8 memory[(size)] __attribute__((aligned(8)));                                   \
	SEC("tc")                                                                       \
	int name(struct __sk_buff *ctx)                                                     \
	{                                                                                \
		u8 *here = memory;                                                       \
                                                                                         \
		/* Not to be loaded anew for each access. */                             \
		asm volatile("" : "+r"(here));                                           \
		return FOLD(name##_body(here, length));                                  \
	}                                                                                \
	FLAT(name)

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#else

#define OUTLINED __attribute__((noinline, noclone))

#define ON_PACKET(name, size)                                                            \
	u64 name(u8 *memory, u64 length)                                                 \
	{                                                                                \
		return FOLD(name##_body(memory, length));                                \
	}
#define ON_MEMORY(name, size) ON_PACKET(name, size)

#endif
