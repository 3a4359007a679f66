// Packets that arrive on the device "lo": one line in the trace pipe for each, with its
// address and length. This is tracex1 of the kernel's samples.
//
// Compilers change the probed function, so its symbol has a suffix in most kernels
// (__netif_receive_skb_core.constprop.0). kprobe.multi finds it by a pattern. For kernels
// without kprobe.multi attach `one` to the name that /proc/kallsyms has.
//
// flags: -D__TARGET_ARCH_x86
// build arm64: -D__TARGET_ARCH_arm64
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "registers.h"

struct net_device {
	char name[16];
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
} __attribute__((preserve_access_index));

static __always_inline int print_if_lo(struct sk_buff **place)
{
	struct sk_buff *skb = NULL;
	char name[16] = {};

	// The function may replace the packet, so it gets the place of a pointer to it.
	bpf_probe_read_kernel(&skb, sizeof(skb), place);
	BPF_CORE_READ_STR_INTO(&name, skb, dev, name);
	// With the NUL: "lo0" is another device.
	if (name[0] != 'l' || name[1] != 'o' || name[2])
		return 0;
	bpf_printk("skb %llx len %u", (__u64)skb, BPF_CORE_READ(skb, len));
	return 0;
}

SEC("kprobe.multi/__netif_receive_skb_core*")
int BPF_KPROBE(any, struct sk_buff **place)
{
	return print_if_lo(place);
}

SEC("?kprobe/__netif_receive_skb_core.constprop.0")
int BPF_KPROBE(one, struct sk_buff **place)
{
	return print_if_lo(place);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
