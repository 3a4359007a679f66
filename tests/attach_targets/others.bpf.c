// HID programs, right and wrong; a member and a structure that Linux 6.18 does not have.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hid_device {
	__u32 vendor;
	char name[128];
};
struct hid_bpf_ctx {
	struct hid_device *hid;
	__u32 allocated_size;
	__s32 retval;
};
#pragma clang attribute pop
struct task_struct;
struct hid_bpf_ops {
	int (*hid_device_event)(struct hid_bpf_ctx *, int, __u64);
	int (*hid_rdesc_fixup)(struct hid_bpf_ctx *);
};
struct sched_ext_ops {
	void (*later)(struct task_struct *);
};
struct later_ops {
	int (*run)(struct task_struct *);
};

extern __u8 *hid_bpf_get_data(struct hid_bpf_ctx *ctx, unsigned int offset,
			      const __u64 rdwr_buf_size) __ksym;

#define EVENT(name) \
	SEC("struct_ops") \
	int BPF_PROG(name, struct hid_bpf_ctx *report, int type, __u64 source)

EVENT(changes_data)
{
	__u8 *data = hid_bpf_get_data(report, 0, 4);

	if (!data)
		return 0;
	data[3] = 1;
	report->retval = 4;
	return 0;
}

EVENT(reads_past)
{
	__u8 *data = hid_bpf_get_data(report, 0, 4);

	return data ? data[4] : 0;
}

EVENT(names)
{
	report->hid->name[126] = 'x';
	return 0;
}

EVENT(names_to_the_end)
{
	report->hid->name[127] = 'x';
	return 0;
}

EVENT(grows)
{
	report->allocated_size = 100;
	return 0;
}

SEC("struct_ops.s")
int BPF_PROG(fixes, struct hid_bpf_ctx *report)
{
	return 0;
}

SEC("struct_ops.s")
int BPF_PROG(sleeps, struct hid_bpf_ctx *report, int type, __u64 source)
{
	return 0;
}

SEC("struct_ops")
void BPF_PROG(implements_new_member, struct task_struct *p)
{
}

SEC("struct_ops")
int BPF_PROG(implements_new_structure, struct task_struct *p)
{
	return 0;
}

#define TABLE(name, structure, member) \
	SEC(".struct_ops.link") struct structure name##_ops = { .member = (void *)name }

TABLE(changes_data, hid_bpf_ops, hid_device_event);
TABLE(reads_past, hid_bpf_ops, hid_device_event);
TABLE(names, hid_bpf_ops, hid_device_event);
TABLE(names_to_the_end, hid_bpf_ops, hid_device_event);
TABLE(grows, hid_bpf_ops, hid_device_event);
TABLE(fixes, hid_bpf_ops, hid_rdesc_fixup);
TABLE(sleeps, hid_bpf_ops, hid_device_event);
TABLE(implements_new_member, sched_ext_ops, later);
TABLE(implements_new_structure, later_ops, run);

char LICENSE[] SEC("license") = "GPL";
