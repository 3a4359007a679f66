// The inner loop of tracing tools: map[log2(count)]++ on a map of type hash, for the 64
// counts in the packet.
// flags: -mcpu=v3
#include "bench.h"
#include "log2.h"

#define COUNTS 512

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

const volatile u32 length = COUNTS;

SEC("tc")
int map_hash(struct __sk_buff *ctx)
{
	u8 *packet = (u8 *)(long)ctx->data;
	u32 done = 0;

	if (packet + COUNTS > (u8 *)(long)ctx->data_end)
		return 0;
	for (u32 i = 0; i < length; i += 8) {
		u32 slot = log2_of(LOAD64(packet + i));
		u64 *count = bpf_map_lookup_elem(&counts, &slot);

		if (count) {
			__sync_fetch_and_add(count, 1);
		} else {
			u64 one = 1;

			bpf_map_update_elem(&counts, &slot, &one, BPF_NOEXIST);
		}
		done++;
	}
	return done;
}
