// Data-dependent branches: the flows of 64 packets of up to 64 bytes. The memory has
// room for one more: a verifier learns no bound from comparing with a packet's end.
// flags: -mcpu=v3
#include "bench.h"
#include "parse.h"

#define ROOM 64

INLINED u64 parse_64_body(const u8 *data, u64 length)
{
	u64 flows = 0;

	for (u32 i = 0; i < length - ROOM; i += ROOM)
		flows = flows * 31 + parse_frame(data + i, data + i + ROOM);
	return flows;
}

ON_MEMORY(parse_64, 65 * ROOM)
