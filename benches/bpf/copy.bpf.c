// Loads and stores: memcpy of the first half of the memory to the second.
// flags: -mcpu=v3 -fno-builtin
#include "bench.h"

INLINED u64 copy_body(u8 *data, u64 length)
{
	u64 half = length / 2;

	for (u64 i = 0; i < half; i += 8)
		STORE64(data + half + i, LOAD64(data + i));
	return LOAD64(data + half) ^ LOAD64(data + length - 8);
}

ON_MEMORY(copy, 8192)
