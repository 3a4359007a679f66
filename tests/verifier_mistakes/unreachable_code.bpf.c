// Unreachable instructions.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
__attribute__((naked)) int on_write(void)
{
	asm volatile("r0 = 0; exit; r0 = 1; exit;");
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
