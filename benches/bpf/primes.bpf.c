// Divisions and short loops: how many primes are below 500?
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 primes_body(const u8 *data, u64 length)
{
	u64 count = 0;

	for (u32 number = 2; number < 500; number++) {
		u32 divisor = 2;

		while (divisor * divisor <= number && number % divisor)
			divisor++;
		if (divisor * divisor > number)
			count++;
	}
	return count;
}

ON_PACKET(primes, 64)
