// flags: -Iinclude
// build without: -Iinclude -DBPFLAB_NO_TESTS
// Tests beside a program: one that passes, two that fail, and events of each kind.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <bpflab/test.h>

struct enter {
	__u64 header;
	__s64 id;
	__u64 args[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} bytes SEC(".maps");

__u64 writes;

SEC("tp/syscalls/sys_enter_write")
int on_write(struct enter *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	__u64 size = ctx->args[2], *known = bpf_map_lookup_elem(&bytes, &pid);

	writes++;
	if (known)
		*known += size;
	else
		bpf_map_update_elem(&bytes, &pid, &size, BPF_ANY);
	return size > 4096;
}

static __always_inline __u64 bytes_of(__u32 pid)
{
	__u64 *known = bpf_map_lookup_elem(&bytes, &pid);

	return known ? *known : 0;
}

BPF_TEST(bytes_are_added_by_process,
	 "args[2]=100, @pid=7, @returns=0", "args[2]=0x10", "args[2]=5000, @pid=8, @returns=1")
{
	TEST_EQ(writes, 3);
	TEST_EQ(bytes_of(7), 116);
	TEST_GT(bytes_of(8), 4096);
	TEST_ASSERT(writes % 2 == 1);
}

BPF_TEST(without_events_nothing_is_counted)
{
	TEST_EQ(writes, 0);
}

BPF_TEST(wrong_sum, "args[2]=100, @pid=7", "args[2]=10")
{
	TEST_EQ(bytes_of(7), 111);
}

BPF_TEST(wrong_condition, "")
{
	TEST_ASSERT(writes % 2 == 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
