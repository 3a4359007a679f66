// flags: -Iinclude
// Tests beside two programs: each event fires the program that is on it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <bpflab/test.h>

struct enter {
	__u64 header;
	__s64 id;
	__u64 args[6];
};

struct leave {
	__u64 header;
	__s64 id;
	__s64 ret;
};

__u64 asked, written, failed;

SEC("tp/syscalls/sys_enter_write")
int on_enter(struct enter *ctx)
{
	asked += ctx->args[2];
	return 0;
}

SEC("tp/syscalls/sys_exit_write")
int on_leave(struct leave *ctx)
{
	if (ctx->ret < 0)
		failed++;
	else
		written += ctx->ret;
	return 0;
}

BPF_TEST(writes_may_be_short, "@event=syscalls/sys_enter_write, args[2]=100",
	 "@event=syscalls/sys_exit_write, ret=60", "@event=syscalls/sys_exit_write, ret=-9")
{
	TEST_EQ(asked, 100);
	TEST_EQ(written, 60);
	TEST_EQ(failed, 1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
