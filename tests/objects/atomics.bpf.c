// The atomic operations that return the old value (instruction set v3).
//
// build v3: -mcpu=v3 -DFETCH
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 wide = 5, old_add, old_and, old_or, old_xor, old_swap, old_compare;
__u32 narrow = 7, old_narrow;

SEC("syscall")
int operate(void *ctx)
{
	__sync_fetch_and_add(&wide, 3);
#ifdef FETCH
	old_add = __sync_fetch_and_add(&wide, 2);
	old_and = __sync_fetch_and_and(&wide, 0xe);
	old_or = __sync_fetch_and_or(&wide, 0x30);
	old_xor = __sync_fetch_and_xor(&wide, 0xff);
	old_swap = __sync_lock_test_and_set(&wide, 1);
	old_compare = __sync_val_compare_and_swap(&wide, 1, 99);
	old_narrow = __sync_fetch_and_add(&narrow, 1);
#endif
	return wide;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
