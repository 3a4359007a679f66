// Word loads: the sum of 64 KiB.
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 sum_body(const u8 *data, u64 length)
{
	u64 sum = 0;

	for (u32 i = 0; i < length; i += 8)
		sum += LOAD64(data + i);
	return sum;
}

ON_MEMORY(sum, 65536)
