// Externs that are the kernel's own symbols: a typeless address, a typed variable,
// a kernel function, and weak ones that no kernel has.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

extern const void vfs_read __ksym;
extern const int bpf_prog_active __ksym;
extern const int bpflab_is_not_there __ksym __weak;
extern const void bpflab_is_nowhere __ksym __weak;
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
extern void bpflab_no_kfunc(void) __ksym __weak;

__u64 address;
__s32 active = -1, pid;

SEC("tp_btf/task_newtask")
int read_symbols(void *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	address = (__u64)&vfs_read;
	if (task) {
		pid = task->pid;
		bpf_task_release(task);
	}
	if (bpflab_no_kfunc)
		bpflab_no_kfunc();
	return &bpflab_is_not_there != 0 || &bpflab_is_nowhere != 0;
}

// Its type is in the BTF of the kernel, its address only in a kallsyms with data.
SEC("?tp_btf/task_newtask")
int read_variable(void *ctx)
{
	const int *variable = (const int *)bpf_per_cpu_ptr(&bpf_prog_active, 0);

	if (variable)
		active = *variable;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
