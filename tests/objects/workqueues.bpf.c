// Work that programs leave for later: work queues and task work.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct bpf_wq {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

// Whole structs: libbpf finds forward declarations incompatible with the kernel's.
struct task_struct {
	int pid;
};

struct bpf_map {
	__u32 id;
};

extern int bpf_wq_init(struct bpf_wq *wq, void *map, unsigned int flags) __ksym;
extern int bpf_wq_set_callback_impl(struct bpf_wq *wq,
				    int (*callback)(void *map, int *key, void *value),
				    unsigned int flags, void *aux__ign) __ksym;
extern int bpf_wq_start(struct bpf_wq *wq, unsigned int flags) __ksym;
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
					      void *map,
					      int (*callback)(struct bpf_map *map,
							      void *key, void *value),
					      void *aux__prog) __ksym __weak;

struct job {
	__u64 runs;
	__u64 again;
	__s64 said;
	struct bpf_wq work;
	struct bpf_task_work task_work;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct job);
	__uint(max_entries, 16);
} jobs SEC(".maps");

static int do_job(void *map, int *key, void *value)
{
	struct job *job = value;

	job->runs++;
	if (job->runs < job->again)
		job->said = bpf_wq_start(&job->work, 0);
	bpf_printk("job %d", *key);
	return 0;
}

static int on_return(struct bpf_map *map, void *key, void *value)
{
	struct job *job = value;

	job->runs++;
	job->said = bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(),
						       &job->task_work, &jobs, on_return, 0);
	return 0;
}

// As many times as the mark says.
SEC("tc")
int queue(struct __sk_buff *skb)
{
	struct job fresh = { .again = skb->mark }, *job;
	__u32 key = skb->priority;
	int err;

	bpf_map_update_elem(&jobs, &key, &fresh, BPF_NOEXIST);
	job = bpf_map_lookup_elem(&jobs, &key);
	if (!job)
		return -1;
	err = bpf_wq_start(&job->work, 0);
	if (err != -22)
		return err;
	err = bpf_wq_init(&job->work, &jobs, 0) ?:
	      bpf_wq_set_callback_impl(&job->work, do_job, 0, 0) ?:
	      bpf_wq_start(&job->work, 0);
	if (err)
		return err;
	// Once in the queue is enough.
	return bpf_wq_start(&job->work, 0) ?: bpf_wq_init(&job->work, &jobs, 0);
}

SEC("tp_btf/sys_enter")
int at_return(void *ctx)
{
	struct job fresh = {}, *job;
	__u32 key = 7;
	int err;

	bpf_map_update_elem(&jobs, &key, &fresh, BPF_NOEXIST);
	job = bpf_map_lookup_elem(&jobs, &key);
	if (!job)
		return -1;
	err = bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &job->task_work,
						 &jobs, on_return, 0);
	if (err)
		return err;
	return bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &job->task_work,
						  &jobs, on_return, 0);
}

char LICENSE[] SEC("license") = "GPL";
