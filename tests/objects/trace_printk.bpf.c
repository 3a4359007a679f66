// bpf_trace_printk and bpf_trace_vprintk with the conversions that the kernel knows,
// and one that it refuses.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__s64 refused, printed;

SEC("raw_tp/sys_enter")
int print(void *ctx)
{
	char comm[16];
	__u64 address = 0xffff888000000000ull;

	bpf_get_current_comm(comm, sizeof(comm));
	bpf_printk("plain");
	bpf_printk("%d %u %x", -1, 7, 255);
	bpf_printk("%ld %llu %lx", -1L, 1ull << 40, 255L);
	bpf_printk("%s has %5d%%", comm, 42);
	printed = bpf_printk("%d %d %d %d %s", 1, 2, 3, 4, "five");
	bpf_printk("%p %px", address, address);
	refused = bpf_trace_printk("%f\n", sizeof("%f\n"));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
