// A request to a block device, as drivers and the block layer pass it.
#ifndef REQUEST_H
#define REQUEST_H

#include <linux/types.h>

struct request {
	// The operation in the lowest 8 bits, flags above.
	unsigned int cmd_flags;
	// The bytes that are not completed yet.
	unsigned int __data_len;
} __attribute__((preserve_access_index));

#endif
