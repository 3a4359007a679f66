// An empty program: the cost of entering and leaving.
// flags: -mcpu=v3
#include "bench.h"

INLINED u64 empty_body(const u8 *data, u64 length)
{
	return 2;
}

#ifdef __bpf__

SEC("tc")
int empty(struct __sk_buff *ctx)
{
	return 2;
}

FLAT(empty)

#else

ON_PACKET(empty, 64)

#endif
