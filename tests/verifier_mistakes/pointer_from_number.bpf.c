// A user space address is dereferenced.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct write_args {
	__u64 common;
	__s64 nr;
	__u64 fd, buf, count;
};

SEC("tp/syscalls/sys_enter_write")
int on_write(struct write_args *ctx)
{
	const char *text = (const char *)ctx->buf;

	return text[0] == '/';
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
