// A multiplication per byte: 64-bit FNV-1a.
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 fnv_body(const u8 *data, u64 length)
{
	u64 hash = 0xcbf29ce484222325ull;

	for (u32 i = 0; i < length; i++)
		hash = (hash ^ data[i]) * 0x100000001b3ull;
	return hash;
}

ON_PACKET(fnv, 1400)
