// SPDX-License-Identifier: GPL-2.0
// Kernel functions used as the verifier lets nobody use them.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NULL ((void *)0)
#define type_id(type) __builtin_btf_type_id(*(type *)0, 0)
#define contains(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define private(name) SEC(".data." #name) __attribute__((aligned(8)))

struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_list_head {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_node {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
extern void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				    void *meta, __u64 off) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_local_irq_save(unsigned long *flags) __ksym;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym;
extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
extern int bpf_strnlen_of_a_module(const char *text) __ksym;
extern void bpf_throw(__u64 cookie) __ksym;

struct item {
	long key;
	struct bpf_list_node node;
};

private(A) struct bpf_spin_lock lock;
private(A) struct bpf_list_head list contains(item, node);

SEC("syscall")
int drops_twice(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	bpf_obj_drop_impl(item, NULL);
	bpf_obj_drop_impl(item, NULL);
	return 0;
}

SEC("syscall")
int reads_what_is_gone(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	item->key = 7;
	bpf_obj_drop_impl(item, NULL);
	return item->key;
}

SEC("syscall")
int writes_what_is_gone(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	bpf_obj_drop_impl(item, NULL);
	item->key = 7;
	return 0;
}

SEC("syscall")
int writes_behind(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	(&item->key)[4] = 7;
	return 0;
}

SEC("syscall")
int keeps_everything(void *ctx)
{
	unsigned long flags;
	struct bpf_iter_num it;

	bpf_obj_new_impl(type_id(struct item), NULL);
	bpf_iter_num_new(&it, 0, 3);
	bpf_rcu_read_lock();
	bpf_local_irq_save(&flags);
	return 0;
}

SEC("syscall")
int pushes_without_the_lock(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	return bpf_list_push_front_impl(&list, &item->node, NULL, 0);
}

SEC("syscall")
int pushes_no_node(void *ctx)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	bpf_spin_lock(&lock);
	bpf_list_push_front_impl(&list, (void *)item, NULL, 0);
	bpf_spin_unlock(&lock);
	return 0;
}

SEC("syscall")
int moves_no_iterator(void *ctx)
{
	struct bpf_iter_num it = {};

	return !!bpf_iter_num_next(&it);
}

SEC("syscall")
int makes_an_iterator_twice(void *ctx)
{
	struct bpf_iter_num it;

	bpf_iter_num_new(&it, 0, 3);
	bpf_iter_num_new(&it, 0, 3);
	return 0;
}

SEC("syscall")
int leaves_no_section(void *ctx)
{
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int restores_in_the_wrong_order(void *ctx)
{
	unsigned long outer, inner;

	bpf_local_irq_save(&outer);
	bpf_local_irq_save(&inner);
	bpf_local_irq_restore(&outer);
	return 0;
}

SEC("syscall")
int gives_back_what_it_does_not_have(void *ctx)
{
	struct task_struct *task = bpf_task_from_pid(7);

	bpf_task_release(task);
	bpf_task_release(task);
	return 0;
}

SEC("syscall")
int calls_what_nobody_knows(void *ctx)
{
	return bpf_strnlen_of_a_module("seven") + 1;
}

static int each(__u32 index, void *context)
{
	bpf_throw(index);
	return 0;
}

SEC("syscall")
int throws_in_a_callback(void *ctx)
{
	bpf_loop(1, each, 0, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
