// Histograms by powers of two: slot n counts the values from 2^n to 2^(n+1)-1, slot 0
// also takes 0.
#ifndef SLOTS_H
#define SLOTS_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define SLOTS 64

static __always_inline __u32 slot_of(__u64 value)
{
	__u32 slot = 0;

#pragma unroll
	for (__u32 width = 32; width; width >>= 1) {
		if (value >> width) {
			value >>= width;
			slot += width;
		}
	}
	return slot;
}

#endif
