// Branches that are hard to predict, and an increment in memory: a histogram of 128
// numbers by powers of two. The memory has 64 slots, a word, then the numbers.
// flags: -mcpu=v3
#include "bench.h"
#include "log2.h"

#define SLOTS 512
#define NUMBERS (SLOTS + 8)

INLINED u64 histogram_body(u8 *data, u64 length)
{
	u64 sum = 0;

	for (u32 i = 0; i < SLOTS; i += 8)
		STORE64(data + i, 0);
	for (u32 i = NUMBERS; i < length; i += 8) {
		// Passing the index through memory hides its value: otherwise verifiers
		// explore the rest of the program for each of the 64 slots.
		volatile u8 *index = data + SLOTS;
		u8 *slot;

		*index = log2_of(LOAD64(data + i));
		slot = data + 8 * (*index & 63);
		STORE64(slot, LOAD64(slot) + 1);
	}
	for (u32 i = 0; i < SLOTS; i += 8)
		sum = sum * 31 + LOAD64(data + i);
	return sum;
}

ON_MEMORY(histogram, NUMBERS + 128 * 8)
