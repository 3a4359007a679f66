// The place of the highest bit that is set, 0 for 0, as BPF tools without a
// count-leading-zeros instruction find it.
#pragma once

INLINED u32 log2_of(u64 value)
{
	u32 slot = 0;

	UNROLLED
	for (u32 width = 32; width; width >>= 1) {
		if (value >> width) {
			value >>= width;
			slot += width;
		}
	}
	return slot;
}
