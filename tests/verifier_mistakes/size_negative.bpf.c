// A signed size is passed to a helper with only its upper bound checked.
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
	__s64 size = ctx->nr;

	if (size > 256)
		return 0;
	bpf_probe_read_user(scratch, size, (void *)ctx->buf);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
