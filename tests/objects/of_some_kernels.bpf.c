// Programs that one kernel takes and another does not, by its configuration, its lockdown
// and its CPUs.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 by_cpu[4];
char kernel_text[8];

SEC("kprobe/do_nanosleep")
int overrides(void *ctx)
{
	return bpf_override_return(ctx, -1);
}

SEC("kprobe/do_nanosleep")
int reads_kernel(void *ctx)
{
	return bpf_probe_read_kernel(kernel_text, sizeof(kernel_text), ctx);
}

SEC("tp/syscalls/sys_enter_write")
int counts_by_cpu(void *ctx)
{
	by_cpu[bpf_get_smp_processor_id()]++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
