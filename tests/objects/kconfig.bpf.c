// Externs that the kernel's configuration answers, of every type, strong and weak.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <stdbool.h>

extern int LINUX_KERNEL_VERSION __kconfig;
extern bool CONFIG_BPF_SYSCALL __kconfig;
extern enum libbpf_tristate CONFIG_BPF_JIT __kconfig __weak;
extern unsigned int CONFIG_HZ __kconfig __weak;
extern char CONFIG_DEFAULT_HOSTNAME[16] __kconfig __weak;
extern unsigned long CONFIG_BPFLAB_IS_NOT_THERE __kconfig __weak;

__u32 version;
__u64 hz, missing;
char first_letter;

SEC("raw_tp/sys_enter")
int read_config(void *ctx)
{
	version = LINUX_KERNEL_VERSION;
	hz = CONFIG_HZ;
	missing = CONFIG_BPFLAB_IS_NOT_THERE;
	first_letter = CONFIG_DEFAULT_HOSTNAME[0];
	return CONFIG_BPF_SYSCALL + (CONFIG_BPF_JIT == TRI_YES);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
