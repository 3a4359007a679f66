// The license as most write it, in an array that is longer than the text.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("raw_tp/sys_enter")
int licensed(void *ctx)
{
	return bpf_get_current_task() == 0;
}

const char gpl_license[8] SEC("license") = "GPL";
