// Per-CPU objects and kernel pointers in values of maps and local storage, right and wrong.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define __kptr __attribute__((btf_type_tag("kptr")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))

static void *(*get_of_group)(void *map, void *cgroup, void *value, __u64 flags) =
	(void *)210 /* bpf_cgrp_storage_get */;

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));
struct counter {
	long hits;
	long misses;
};
struct counters {
	struct counter __percpu_kptr *all;
};
struct owner {
	struct task_struct __kptr *task;
};

extern void *bpf_percpu_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_percpu_obj_drop_impl(void *kptr, void *meta) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct counters);
} array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct owner);
} storage SEC(".maps");

struct {
	__uint(type, 32 /* BPF_MAP_TYPE_CGRP_STORAGE */);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct counters);
} groups SEC(".maps");

__u64 seen;

static __always_inline struct counters *element(void)
{
	int key = 0;

	return bpf_map_lookup_elem(&array, &key);
}

static __always_inline struct counter *new_counter(void)
{
	return bpf_percpu_obj_new_impl(bpf_core_type_id_local(struct counter), 0);
}

SEC("tp_btf/sys_enter")
int stores(void *ctx)
{
	struct counters *to = element();
	struct counter *made;

	if (!to)
		return 0;
	made = new_counter();
	if (!made)
		return 0;
	made = bpf_kptr_xchg(&to->all, made);
	if (made)
		bpf_percpu_obj_drop_impl(made, 0);
	return 0;
}

SEC("tp_btf/sys_enter")
int forgets_old(void *ctx)
{
	struct counters *to = element();
	struct counter *made;

	if (!to)
		return 0;
	made = new_counter();
	if (made)
		bpf_kptr_xchg(&to->all, made);
	return 0;
}

SEC("tp_btf/sys_enter")
int counts(void *ctx)
{
	struct counters *of = element();
	struct counter *all, *one;

	if (!of)
		return 0;
	bpf_rcu_read_lock();
	all = of->all;
	if (all) {
		one = bpf_this_cpu_ptr(all);
		one->hits++;
		one = bpf_per_cpu_ptr(all, 0);
		if (one)
			seen = one->misses;
	}
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tp_btf/sys_enter")
int without_section(void *ctx)
{
	struct counters *of = element();
	struct counter *all, *one;

	if (!of)
		return 0;
	all = of->all;
	if (!all)
		return 0;
	one = bpf_this_cpu_ptr(all);
	one->hits++;
	return 0;
}

SEC("tp_btf/sys_enter")
int after_section(void *ctx)
{
	struct counters *of = element();
	struct counter *all, *one = 0;

	if (!of)
		return 0;
	bpf_rcu_read_lock();
	all = of->all;
	if (all)
		one = bpf_this_cpu_ptr(all);
	bpf_rcu_read_unlock();
	if (one)
		one->hits++;
	return 0;
}

SEC("tp_btf/sys_enter")
int of_all_cpus(void *ctx)
{
	struct counters *of = element();
	struct counter *all;

	if (!of)
		return 0;
	bpf_rcu_read_lock();
	all = of->all;
	if (all)
		seen = all->hits;
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tp_btf/sys_enter")
int keeps_task(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf(), *old;
	struct owner *owner;

	owner = bpf_task_storage_get(&storage, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!owner)
		return 0;
	task = bpf_task_acquire(task);
	if (!task)
		return 0;
	old = bpf_kptr_xchg(&owner->task, task);
	if (old)
		bpf_task_release(old);
	return 0;
}

SEC("tp_btf/sys_enter")
int reads_kept_task(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct owner *owner;

	owner = bpf_task_storage_get(&storage, task, 0, 0);
	if (!owner)
		return 0;
	bpf_rcu_read_lock();
	task = owner->task;
	if (task)
		seen = task->pid;
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tp_btf/sys_enter")
int leaks_task(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct owner *owner;

	owner = bpf_task_storage_get(&storage, task, 0, 0);
	if (!owner)
		return 0;
	bpf_kptr_xchg(&owner->task, 0);
	return 0;
}

SEC("tp_btf/sys_enter")
int stores_number(void *ctx)
{
	struct owner *owner;

	owner = bpf_task_storage_get(&storage, bpf_get_current_task_btf(), 0, 0);
	if (owner)
		*(volatile long *)&owner->task = 5;
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int of_group(__u64 *ctx)
{
	struct counters *of;
	struct counter *made;

	of = get_of_group(&groups, (void *)ctx[0], 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!of)
		return 0;
	made = new_counter();
	if (!made)
		return 0;
	made = bpf_kptr_xchg(&of->all, made);
	if (made)
		bpf_percpu_obj_drop_impl(made, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
