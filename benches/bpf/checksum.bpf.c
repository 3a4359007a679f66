// Byte loads: Fletcher's checksum of a packet.
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 checksum_body(const u8 *data, u64 length)
{
	u64 sum = 0, sums = 0;

	for (u32 i = 0; i < length; i++) {
		sum += data[i];
		sums += sum;
	}
	return sums << 32 | sum;
}

ON_PACKET(checksum, 1400)
