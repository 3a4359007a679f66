// A short run: the flow of one packet.
// flags: -mcpu=v3
#include "bench.h"
#include "parse.h"

INLINED u64 parse_one_body(const u8 *data, const u8 *end)
{
	return parse_frame(data, end);
}

#ifdef __bpf__

// A verifier needs a comparison with the packet's end here, not a constant length.
SEC("tc")
int parse_one(struct __sk_buff *ctx)
{
	return FOLD(parse_one_body((u8 *)(long)ctx->data, (u8 *)(long)ctx->data_end));
}

SEC("?tc")
u64 parse_one_flat(u8 *data, u64 length)
{
	return FOLD(parse_one_body(data, data + length));
}

#else

u64 parse_one(u8 *data, u64 length)
{
	return FOLD(parse_one_body(data, data + length));
}

#endif
