// 32-bit arithmetic: Bob Jenkins' hash of words (lookup3, `hashword`).
// flags: -mcpu=v3
#include "bench.h"

#define MIX(a, b, c)                                                                     \
	do {                                                                             \
		a -= c, a ^= ROTATE_LEFT(c, 4), c += b;                                  \
		b -= a, b ^= ROTATE_LEFT(a, 6), a += c;                                  \
		c -= b, c ^= ROTATE_LEFT(b, 8), b += a;                                  \
		a -= c, a ^= ROTATE_LEFT(c, 16), c += b;                                 \
		b -= a, b ^= ROTATE_LEFT(a, 19), a += c;                                 \
		c -= b, c ^= ROTATE_LEFT(b, 4), b += a;                                  \
	} while (0)

#define FINAL(a, b, c)                                                                   \
	do {                                                                             \
		c ^= b, c -= ROTATE_LEFT(b, 14);                                         \
		a ^= c, a -= ROTATE_LEFT(c, 11);                                         \
		b ^= a, b -= ROTATE_LEFT(a, 25);                                         \
		c ^= b, c -= ROTATE_LEFT(b, 16);                                         \
		a ^= c, a -= ROTATE_LEFT(c, 4);                                          \
		b ^= a, b -= ROTATE_LEFT(a, 14);                                         \
		c ^= b, c -= ROTATE_LEFT(b, 24);                                         \
	} while (0)

// The length is a multiple of 12.
INLINED u64 jenkins_body(const u8 *data, u64 length)
{
	u32 a = 0xdeadbeef + (u32)length, b = a, c = a, last = (u32)length - 12;

	for (u32 i = 0; i < last; i += 12) {
		a += LOAD32(data + i);
		b += LOAD32(data + i + 4);
		c += LOAD32(data + i + 8);
		MIX(a, b, c);
	}
	a += LOAD32(data + last);
	b += LOAD32(data + last + 4);
	c += LOAD32(data + last + 8);
	FINAL(a, b, c);
	return (u64)b << 32 | c;
}

ON_PACKET(jenkins, 1404)
