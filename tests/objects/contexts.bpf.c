// One program of each frequent type that reads its own context.
#define __TARGET_ARCH_x86
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

__u64 raw_number, btf_pid, seen_length, seen_protocol;

SEC("raw_tp/sys_enter")
int raw_tracepoint(struct bpf_raw_tracepoint_args *ctx)
{
	raw_number = ctx->args[1];
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(btf_tracepoint, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	btf_pid = next->pid;
	return 0;
}

SEC("xdp")
int xdp_length(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 14 > end)
		return XDP_DROP;
	seen_length = end - data;
	seen_protocol = data[12] << 8 | data[13];
	return seen_protocol == 0x0800 ? XDP_PASS : XDP_DROP;
}

SEC("tc")
int tc_mark(struct __sk_buff *skb)
{
	skb->mark = skb->len;
	skb->cb[0] = 1;
	return 0;
}

SEC("socket")
int socket_filter(struct __sk_buff *skb)
{
	return skb->len > 14 ? 14 : 0;
}

SEC("kprobe/do_nanosleep")
int BPF_KPROBE(on_sleep, void *timer, int mode)
{
	return mode;
}

SEC("uprobe//bin/sh:main+0x10")
int on_main(struct pt_regs *ctx)
{
	return 0;
}

SEC("perf_event")
int on_sample(void *ctx)
{
	return 0;
}

SEC("cgroup_skb/egress")
int let_pass(struct __sk_buff *skb)
{
	return 1;
}

SEC("fentry/vfs_read")
int BPF_PROG(on_read)
{
	return 0;
}

SEC("fmod_ret.s/bpf_fentry_test1")
int BPF_PROG(sleeps_and_changes, int a, int result)
{
	return result;
}

SEC("lsm/file_open")
int BPF_PROG(allow_open, void *file, int result)
{
	return result;
}

SEC("iter/task")
int each_task(void *ctx)
{
	return 0;
}

SEC("syscall")
int from_user(void *ctx)
{
	return 5;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
