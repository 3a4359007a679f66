// Short inner loops that end early: how often does a word of 8 bytes occur in a text? The
// memory has the word, then the text.
// flags: -mcpu=v3
#include "bench.h"

#define WORD 8

INLINED u64 search_body(const u8 *data, u64 length)
{
	u64 found = 0, compared = 0;

	for (u32 i = WORD; i + WORD <= length; i++) {
		u32 same = 0;

		while (same < WORD && data[i + same] == data[same])
			same++;
		found += same == WORD;
		compared += same;
	}
	return found << 32 | compared;
}

ON_PACKET(search, 1024)
