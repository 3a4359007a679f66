// Arithmetic only: a linear congruential generator with mixed output.
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 lcg_body(const u8 *data, u64 length)
{
	u64 x = LOAD64(data);

	for (u32 i = 0; i < 1000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		x ^= x >> 29;
	}
	return x;
}

ON_PACKET(lcg, 64)
