// Neither a license nor a version: what is GPL only is refused to it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("raw_tp/sys_enter")
int unlicensed(void *ctx)
{
	return 0;
}
