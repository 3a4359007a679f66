// The types of a kernel that is made up: structures of operations that not every kernel is
// built with, their stubs, and kernel functions for the programs that implement them.
#include <linux/types.h>

#define VALUE(name) \
	struct bpf_struct_ops_##name { \
		struct bpf_struct_ops_common_value common; \
		struct name data; \
	} name##_value

struct bpf_struct_ops_common_value {
	int refcnt;
	int state;
};

// net/sched/bpf_qdisc.c
struct gnet_stats_queue {
	__u32 qlen;
	__u32 backlog;
	__u32 drops;
};
struct gnet_stats_basic_sync {
	struct {
		struct {
			struct {
				struct {
					__s64 counter;
				} a;
			} a;
		} v;
	} bytes, packets;
};
struct qdisc_skb_head {
	void *head;
	void *tail;
	__u32 qlen;
};
struct Qdisc {
	__u32 flags;
	__u32 limit;
	__u32 handle;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
	struct gnet_stats_basic_sync bstats;
} a_qdisc;
struct sk_buff {
	struct sk_buff *next;
	__s64 tstamp;
	char cb[48];
	__u32 len;
	__u32 hash;
} a_packet;
struct qdisc_skb_cb {
	__u32 pkt_len;
	__u32 tc_classid;
	unsigned char data[20];
} a_control_block;
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
} a_list;
struct __sk_buff {
	__u32 len;
} a_context;
struct bpf_dynptr {
	__u64 __opaque[2];
} a_dynptr;
struct nlattr {
	__u16 nla_len;
} an_attribute;
struct netlink_ext_ack {
	const char *_msg;
} an_answer;
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	int (*change)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
};
VALUE(Qdisc_ops);

int Qdisc_ops__enqueue(struct sk_buff *skb__ref, struct Qdisc *sch, struct sk_buff **to_free)
{
	return 0;
}

__u32 bpf_skb_get_hash(struct sk_buff *skb)
{
	return 0;
}

void bpf_kfree_skb(struct sk_buff *skb)
{
}

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free_list)
{
}

void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire, __u64 delta_ns)
{
}

void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb)
{
}

int bpf_dynptr_from_skb(struct __sk_buff *s, __u64 flags, struct bpf_dynptr *ptr__uninit)
{
	return 0;
}

// kernel/sched/ext.c
struct sched_ext_entity {
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
	_Bool disallow;
};
struct task_struct {
	int pid;
	struct sched_ext_entity scx;
} a_task;
struct scx_exit_info {
	int kind;
	__s64 exit_code;
} an_exit;
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	_Bool (*yield)(struct task_struct *, struct task_struct *);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	void (*later)(struct task_struct *);
	__u64 flags;
	char name[128];
};
VALUE(sched_ext_ops);

void sched_ext_ops__dispatch(__s32 prev_cpu, struct task_struct *prev__nullable)
{
}

_Bool sched_ext_ops__yield(struct task_struct *from, struct task_struct *to__nullable)
{
	return 0;
}

void sched_ext_ops__later(struct task_struct *p)
{
}

__s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
			     _Bool *is_idle)
{
	return 0;
}

void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags)
{
}

_Bool scx_bpf_dsq_move_to_local(__u64 dsq_id)
{
	return 0;
}

__s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node)
{
	return 0;
}

// drivers/hid/bpf/hid_bpf_struct_ops.c
enum hid_report_type { HID_INPUT_REPORT };
struct hid_device {
	__u32 vendor;
	char name[128];
	char phys[64];
	char uniq[64];
} a_device;
struct hid_bpf_ctx {
	struct hid_device *hid;
	__u32 allocated_size;
	union {
		__s32 retval;
		__s32 size;
	};
} a_report;
struct hid_bpf_ops {
	int hid_id;
	__u32 flags;
	int (*hid_device_event)(struct hid_bpf_ctx *, enum hid_report_type, __u64);
	int (*hid_rdesc_fixup)(struct hid_bpf_ctx *);
};
VALUE(hid_bpf_ops);

__u8 *hid_bpf_get_data(struct hid_bpf_ctx *ctx, unsigned int offset, const __u64 rdwr_buf_size)
{
	return 0;
}

// The types of contexts: of a program, and of the kernel (kernel/bpf/btf.c).
struct xdp_buff {
	void *data;
} a_frame;
struct xdp_md {
	__u32 data;
} an_xdp_context;
struct bpf_ctx_convert {
	struct __sk_buff BPF_PROG_TYPE_SCHED_CLS_prog;
	struct sk_buff BPF_PROG_TYPE_SCHED_CLS_kern;
	struct xdp_md BPF_PROG_TYPE_XDP_prog;
	struct xdp_buff BPF_PROG_TYPE_XDP_kern;
} all_contexts;

// What tracing programs attach to.
int bpf_fentry_test1(int a)
{
	return a + 1;
}

struct pt_regs;
typedef void (*btf_trace_sys_enter)(void *, struct pt_regs *, long);
btf_trace_sys_enter a_tracepoint;

// A structure that Linux 6.18 does not have.
struct later_ops {
	int (*run)(struct task_struct *);
};
VALUE(later_ops);
