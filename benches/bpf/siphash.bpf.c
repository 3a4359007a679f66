// Additions, rotations and exclusive ors on four words: SipHash-2-4 (Aumasson, Bernstein)
// with the key 00 01 … 0f of its paper.
// flags: -mcpu=v3
#include "bench.h"

#define ROUND(a, b, c, d)                                                                \
	do {                                                                             \
		a += b, b = ROTATE_LEFT(b, 13), b ^= a, a = ROTATE_LEFT(a, 32);          \
		c += d, d = ROTATE_LEFT(d, 16), d ^= c;                                  \
		a += d, d = ROTATE_LEFT(d, 21), d ^= a;                                  \
		c += b, b = ROTATE_LEFT(b, 17), b ^= c, c = ROTATE_LEFT(c, 32);          \
	} while (0)

// The length is a multiple of 8.
INLINED u64 siphash_body(const u8 *data, u64 length)
{
	u64 key0 = 0x0706050403020100ull, key1 = 0x0f0e0d0c0b0a0908ull;
	u64 a = key0 ^ 0x736f6d6570736575ull, b = key1 ^ 0x646f72616e646f6dull;
	u64 c = key0 ^ 0x6c7967656e657261ull, d = key1 ^ 0x7465646279746573ull;

	for (u32 i = 0; i < length; i += 8) {
		u64 word = LOAD64(data + i);

		d ^= word;
		ROUND(a, b, c, d);
		ROUND(a, b, c, d);
		a ^= word;
	}
	d ^= length << 56;
	ROUND(a, b, c, d);
	ROUND(a, b, c, d);
	a ^= length << 56;
	c ^= 0xff;
	ROUND(a, b, c, d);
	ROUND(a, b, c, d);
	ROUND(a, b, c, d);
	ROUND(a, b, c, d);
	return a ^ b ^ c ^ d;
}

ON_PACKET(siphash, 1400)
