// Functions outside .text that programs call: static and global ones in the program's
// own section, a global one in another. libbpf refuses them (a global one is a program
// to it), the linker of clang does not.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static __noinline SEC("raw_tp/sys_enter") int beside(int x)
{
	return x + bpf_get_smp_processor_id();
}

SEC("raw_tp/sys_enter")
__noinline int beside_global(int x)
{
	return x + 20;
}

SEC("raw_tp/sys_exit")
__noinline int elsewhere(int x)
{
	return x + 300;
}

SEC("raw_tp/sys_enter")
int calls_all(void *ctx)
{
	return beside(1) + beside_global(1) + elsewhere(1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
