// Loads through a typed pointer: 64 times the pid of the current task, and as many of its
// thread group. Needs the BTF of a kernel, so it is not in the table; docs/benchmarks.md has
// the command.
// flags: -mcpu=v3
#include "bench.h"

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

const volatile u32 rounds = 64;

SEC("tc")
int kernel_loads(struct __sk_buff *ctx)
{
	volatile struct task_struct *task = (void *)bpf_get_current_task_btf();
	u32 equal = 0;

	for (u32 i = 0; i < rounds; i++)
		equal += task->pid == task->tgid;
	return equal;
}
