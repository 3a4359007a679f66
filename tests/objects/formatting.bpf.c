// The kernel's text of an object by its type, and what iterators print.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define __ksized __attribute__((preserve_access_index))

struct render {
	__u32 type_id, ptr_size;
	__u64 flags;
	__u64 address;
	__s64 said;
	char object[1024];
	char text[16384];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct render);
	__uint(max_entries, 1);
} renders SEC(".maps");

static __always_inline int render_into(__u32 size)
{
	struct btf_ptr ptr = {};
	struct render *render;
	__u32 zero = 0;

	render = bpf_map_lookup_elem(&renders, &zero);
	if (!render)
		return 1;
	ptr.ptr = render->address ? (void *)render->address : render->object;
	ptr.type_id = render->type_id;
	if (render->ptr_size == 12)
		render->said = bpf_snprintf_btf(render->text, size, &ptr, 12, render->flags);
	else
		render->said = bpf_snprintf_btf(render->text, size, &ptr, sizeof(ptr),
						render->flags);
	return 0;
}

// The object in the map, or what is at an address.
SEC("syscall")
int render(void *ctx)
{
	return render_into(sizeof(((struct render *)0)->text));
}

SEC("syscall")
int render_short(void *ctx)
{
	return render_into(32);
}

struct task_struct {
	int pid;
	char comm[16];
} __ksized;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id, seq_num;
} __ksized;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __ksized;

// A table of tasks: a heading, lines, and how many there were.
SEC("iter/task")
int tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;

	if (ctx->meta->seq_num == 0)
		bpf_seq_write(seq, "   pid name\n", 12);
	if (!task) {
		BPF_SEQ_PRINTF(seq, "%llu tasks\n", ctx->meta->seq_num);
		return 0;
	}
	BPF_SEQ_PRINTF(seq, "%6d %s\n", task->pid, task->comm);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
