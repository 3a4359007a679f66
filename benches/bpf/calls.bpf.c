// Function calls: 100 times a chain of four.
// flags: -mcpu=v3
#include "bench.h"

static OUTLINED u64 fourth(u64 x, u64 y)
{
	return (x ^ y) * 0x9e3779b1;
}

static OUTLINED u64 third(u64 x, u64 y)
{
	return fourth(x + y, y) + 3;
}

static OUTLINED u64 second(u64 x, u64 y)
{
	return third(x >> 1, y) ^ x;
}

static OUTLINED u64 first(u64 x, u64 y)
{
	return second(x, y + 1) - y;
}

INLINED u64 calls_body(const u8 *data, u64 length)
{
	u64 x = LOAD64(data);

	for (u32 i = 0; i < 100; i++)
		x = first(x, i);
	return x;
}

ON_PACKET(calls, 64)
