// Counts in hash maps, from several CPUs at once.
#ifndef COUNT_H
#define COUNT_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

// Adds 1 to the count under a key, which begins at 0. Where another CPU enters the
// key at the same moment, its count is the one that both add to. Returns 0, or the
// error of a map that is full.
static __always_inline long count(void *map, const void *key)
{
	__u64 one = 1;
	__u64 *known = bpf_map_lookup_elem(map, key);

	if (!known) {
		long error = bpf_map_update_elem(map, key, &one, BPF_NOEXIST);

		if (error != -EEXIST)
			return error;
		known = bpf_map_lookup_elem(map, key);
		if (!known)
			return -ENOENT;
	}
	__sync_fetch_and_add(known, 1);
	return 0;
}

#endif
