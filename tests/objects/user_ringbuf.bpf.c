// A program that drains samples of user space.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
} commands SEC(".maps");

struct command {
	__u32 add;
	__u32 stop;
};

__u64 sum, odd;

static long on_command(struct bpf_dynptr *sample, void *context)
{
	struct command command;
	__u64 *times = context;

	if (bpf_dynptr_read(&command, sizeof(command), sample, 0, 0)) {
		odd++;
		return 0;
	}
	sum += command.add * *times;
	return command.stop != 0;
}

SEC("raw_tp/sys_enter")
int drain(void *ctx)
{
	__u64 times = 2;

	return bpf_user_ringbuf_drain(&commands, on_command, &times, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
