// The last instruction runs past the end of the program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/syscalls/sys_enter_write")
__attribute__((naked)) int on_write(void)
{
	asm volatile("r0 = 0;");
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
