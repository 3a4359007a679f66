// Counts writes whose size is a state, for values that are written as the names of enumerators.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum state {
	STATE_IDLE = 3,
	STATE_BUSY = 5,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, enum state);
	__type(value, __u64);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} by_cpu SEC(".maps");

const volatile enum state wanted = STATE_IDLE;
__u64 others;

struct enter {
	__u64 header;
	__u64 nr;
	__u64 args[6];
};

SEC("tp/syscalls/sys_enter_write")
int on_write(struct enter *ctx)
{
	enum state state = ctx->args[2];
	__u64 *seen = bpf_map_lookup_elem(&states, &state);

	if (state != wanted)
		others++;
	if (seen)
		*seen += 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
