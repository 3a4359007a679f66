// A license that is not GPL-compatible, and a kernel version as old loaders asked
// for it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("kprobe/do_nanosleep")
int closed(void *ctx)
{
	return bpf_get_smp_processor_id() & 0;
}

char _license[] SEC("license") = "Proprietary";
__u32 _version SEC("version") = 0x060c05;
