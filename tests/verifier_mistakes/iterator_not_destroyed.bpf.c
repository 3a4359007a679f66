// An iterator is left without being destroyed.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct bpf_iter_num {
	__u64 __opaque[1];
};

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

SEC("tp/syscalls/sys_enter_write")
int on_write(void *ctx)
{
	struct bpf_iter_num it;
	int *number;

	bpf_iter_num_new(&it, 0, 8);
	while ((number = bpf_iter_num_next(&it))) {
		if (*number == 3)
			return 0;
	}
	bpf_iter_num_destroy(&it);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
