// Counters in hash maps, shared by several CPUs.
#ifndef COUNT_H
#define COUNT_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

// Adds 1 to the count of a key, initially 0. If another CPU inserts the
// key at the same time, both add to that one count. Returns 0, or the
// error of a full map.
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
