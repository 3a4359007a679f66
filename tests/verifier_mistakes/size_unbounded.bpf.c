// An unbounded size is passed to a helper.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct write_args {
	__u64 common;
	__s64 nr;
	__u64 fd, buf, count;
};

char scratch[256];

SEC("tp/syscalls/sys_enter_write")
int on_write(struct write_args *ctx)
{
	__u64 pages = ctx->count >> 12;

	bpf_probe_read_user(scratch, pages, (void *)ctx->buf);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
