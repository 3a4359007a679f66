// The position of the highest set bit, 0 for 0, computed as BPF tools do without a
// count-leading-zeros instruction.
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
