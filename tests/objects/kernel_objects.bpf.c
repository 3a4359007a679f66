// SPDX-License-Identifier: GPL-2.0
// Tasks, cgroups, memory and caches of the kernel: looked up, held and walked by kernel
// functions.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NULL ((void *)0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
	__u64 id;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct mm_struct {
	int map_count;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
};
struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct css_set *cgroups;
};
struct kmem_cache {
	unsigned int object_size;
	const char *name;
};
#pragma clang attribute pop

struct bpf_iter_task {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct bpf_iter_task_vma {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_css {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct bpf_iter_css_task {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_kmem_cache {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym;
extern struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym;
extern long bpf_task_under_cgroup(struct task_struct *task, struct cgroup *ancestor) __ksym;
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 addr) __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym;
extern int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
			    unsigned int flags) __ksym;
extern struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym;
extern void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym;
extern int bpf_iter_kmem_cache_new(struct bpf_iter_kmem_cache *it) __ksym;
extern struct kmem_cache *bpf_iter_kmem_cache_next(struct bpf_iter_kmem_cache *it) __ksym;
extern void bpf_iter_kmem_cache_destroy(struct bpf_iter_kmem_cache *it) __ksym;
extern int bpf_copy_from_user_str(void *to, __u32 to__sz, const void *from, __u64 flags) __ksym;

/* What the test asks for, and what it is told. */
int pid;
__u64 id, address;
__u32 flags;
__u64 found[16];
__u32 count;
char text[16];

/* So that these types are known. */
struct css_set some_set;
struct mm_struct some_memory;

/* In memory, where the verifier does not count along. */
static void note(__u64 value)
{
	__u32 at = count;

	if (at < 16)
		found[at] = value;
	count = at + 1;
}

SEC("syscall")
int task_by_pid(void *ctx)
{
	struct task_struct *task = bpf_task_from_pid(pid), *other;
	int tgid;

	if (!task)
		return -1;
	other = bpf_task_acquire(task);
	tgid = task->tgid;
	if (other)
		bpf_task_release(other);
	bpf_task_release(task);
	return tgid;
}

SEC("syscall")
int tasks(void *ctx)
{
	struct task_struct *task, *of;
	struct bpf_iter_task it;

	count = 0;
	of = bpf_task_from_pid(pid);
	if (!of)
		return -1;
	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, of, 2);
	while ((task = bpf_iter_task_next(&it)))
		note(task->pid);
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	bpf_task_release(of);
	return count;
}

SEC("syscall")
int processes(void *ctx)
{
	struct task_struct *task;
	struct bpf_iter_task it;

	count = 0;
	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, NULL, 0);
	while ((task = bpf_iter_task_next(&it)))
		if (task->pid != task->tgid)
			note(task->pid);
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return count; /* None. */
}

SEC("syscall")
int level_above(void *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(id), *above;
	int result = -2;

	if (!cgroup)
		return -1;
	above = bpf_cgroup_ancestor(cgroup, flags);
	if (above) {
		found[0] = above->kn->id;
		result = above->level;
		bpf_cgroup_release(above);
	}
	bpf_cgroup_release(cgroup);
	return result;
}

SEC("syscall")
int is_under(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cgroup *cgroup = bpf_cgroup_from_id(id);
	int result;

	if (!cgroup)
		return -1;
	result = bpf_task_under_cgroup(task, cgroup);
	bpf_cgroup_release(cgroup);
	return result;
}

SEC("syscall")
int family(void *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(id);
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;
	int error;

	count = 0;
	if (!cgroup)
		return -1;
	bpf_rcu_read_lock();
	error = bpf_iter_css_new(&it, &cgroup->self, flags);
	while ((css = bpf_iter_css_next(&it)))
		note(css->cgroup->kn->id);
	bpf_iter_css_destroy(&it);
	bpf_rcu_read_unlock();
	bpf_cgroup_release(cgroup);
	return error ?: count;
}

SEC("syscall")
int mappings(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	int error;

	count = 0;
	error = bpf_iter_task_vma_new(&it, task, address);
	while ((vma = bpf_iter_task_vma_next(&it)))
		note(vma->vm_start);
	bpf_iter_task_vma_destroy(&it);
	return error ?: count;
}

SEC("syscall")
int caches(void *ctx)
{
	struct bpf_iter_kmem_cache it;
	struct kmem_cache *cache;

	count = 0;
	bpf_iter_kmem_cache_new(&it);
	while ((cache = bpf_iter_kmem_cache_next(&it)))
		note(cache->object_size);
	bpf_iter_kmem_cache_destroy(&it);
	return count;
}

SEC("syscall")
int user_text(void *ctx)
{
	return bpf_copy_from_user_str(text, 8, (const void *)address, flags);
}

char LICENSE[] SEC("license") = "GPL";
