// SPDX-License-Identifier: GPL-2.0
// Kernel functions: iterators, allocated objects, lists, trees, sets of CPUs, strings,
// locks. Each program returns a number that says whether all went well.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NULL ((void *)0)
#define bool _Bool
#define true 1
#define false 0
#define type_id(type) __builtin_btf_type_id(*(type *)0, 0)
#define container(pointer, type, member) \
	((type *)((void *)(pointer)-__builtin_offsetof(type, member)))
#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(type_id(type), NULL))
#define contains(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define private(name) SEC(".data." #name) __attribute__((aligned(8)))

/* As in newer kernels' <linux/bpf.h>. */
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_list_head {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_node {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct bpf_rb_root {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_rb_node {
	__u64 __opaque[4];
} __attribute__((aligned(8)));
struct bpf_refcount {
	__u32 __opaque[1];
} __attribute__((aligned(4)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

struct bpf_iter_bits {
	__u64 __opaque[2];
};
extern int bpf_iter_bits_new(struct bpf_iter_bits *it, const __u64 *words, __u32 count) __ksym;
extern int *bpf_iter_bits_next(struct bpf_iter_bits *it) __ksym;
extern void bpf_iter_bits_destroy(struct bpf_iter_bits *it) __ksym;

extern void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern void *bpf_refcount_acquire_impl(void *object, void *meta) __ksym;
extern int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				    void *meta, __u64 off) __ksym;
extern int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				   void *meta, __u64 off) __ksym;
extern struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_back(struct bpf_list_head *head) __ksym;
extern int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			       bool(less)(struct bpf_rb_node *a, const struct bpf_rb_node *b),
			       void *meta, __u64 off) __ksym;
extern struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root,
					     struct bpf_rb_node *node) __ksym;
extern struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym;
extern struct bpf_rb_node *bpf_rbtree_root(struct bpf_rb_root *root) __ksym;
extern struct bpf_rb_node *bpf_rbtree_left(struct bpf_rb_root *root,
					   struct bpf_rb_node *node) __ksym;
extern struct bpf_rb_node *bpf_rbtree_right(struct bpf_rb_root *root,
					    struct bpf_rb_node *node) __ksym;

struct cpumask {
	unsigned long bits[1];
};
struct bpf_cpumask {
	struct cpumask cpumask;
};
extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_set_cpu(__u32 cpu, struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_clear_cpu(__u32 cpu, struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_test_and_set_cpu(__u32 cpu, struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *mask) __ksym;
extern void bpf_cpumask_setall(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_clear(struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_and(struct bpf_cpumask *to, const struct cpumask *a,
			    const struct cpumask *b) __ksym;
extern void bpf_cpumask_xor(struct bpf_cpumask *to, const struct cpumask *a,
			    const struct cpumask *b) __ksym;
extern bool bpf_cpumask_full(const struct cpumask *mask) __ksym;
extern bool bpf_cpumask_empty(const struct cpumask *mask) __ksym;
extern bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b) __ksym;
extern bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b) __ksym;
extern __u32 bpf_cpumask_first(const struct cpumask *mask) __ksym;
extern __u32 bpf_cpumask_first_zero(const struct cpumask *mask) __ksym;
extern __u32 bpf_cpumask_weight(const struct cpumask *mask) __ksym;
extern __u32 bpf_cpumask_any_distribute(const struct cpumask *mask) __ksym;
extern int bpf_cpumask_populate(struct cpumask *mask, void *src, unsigned long src__sz) __ksym;

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;
extern void bpf_local_irq_save(unsigned long *flags) __ksym;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym;

extern int bpf_strcmp(const char *a, const char *b) __ksym;
extern int bpf_strcasecmp(const char *a, const char *b) __ksym;
extern int bpf_strchr(const char *text, char c) __ksym;
extern int bpf_strchrnul(const char *text, char c) __ksym;
extern int bpf_strnchr(const char *text, unsigned long count, char c) __ksym;
extern int bpf_strrchr(const char *text, int c) __ksym;
extern int bpf_strlen(const char *text) __ksym;
extern int bpf_strnlen(const char *text, unsigned long count) __ksym;
extern int bpf_strspn(const char *text, const char *accept) __ksym;
extern int bpf_strcspn(const char *text, const char *reject) __ksym;
extern int bpf_strstr(const char *text, const char *wanted) __ksym;
extern int bpf_strnstr(const char *text, const char *wanted, unsigned long len) __ksym;

struct item {
	long key;
	struct bpf_list_node node;
	struct bpf_rb_node sorted;
	struct bpf_refcount users;
};

private(A) struct bpf_spin_lock lock;
private(A) struct bpf_list_head list contains(item, node);
private(B) struct bpf_spin_lock tree_lock;
private(B) struct bpf_rb_root tree contains(item, sorted);

SEC("syscall")
int numbers(void *ctx)
{
	struct bpf_iter_num it;
	int *number, sum = 0;

	bpf_iter_num_new(&it, -3, 10);
	while ((number = bpf_iter_num_next(&it)))
		sum += *number;
	bpf_iter_num_destroy(&it);
	return sum; /* 45 - 6 */
}

SEC("syscall")
int numbers_backwards(void *ctx)
{
	struct bpf_iter_num it;
	int error, count = 0;

	error = bpf_iter_num_new(&it, 2, 1);
	while (bpf_iter_num_next(&it))
		count++;
	bpf_iter_num_destroy(&it);
	return error - count;
}

SEC("syscall")
int bits(void *ctx)
{
	__u64 words[2] = { 0x8000000000000101, 0x10 };
	struct bpf_iter_bits it;
	int *bit, sum = 0;

	bpf_iter_bits_new(&it, words, 2);
	while ((bit = bpf_iter_bits_next(&it)))
		sum = sum * 100 + *bit;
	bpf_iter_bits_destroy(&it);
	return sum; /* 0, 8, 63, 68 */
}

static int push(long key, bool at_end)
{
	struct item *item = bpf_obj_new(struct item);
	int result;

	if (!item)
		return -1;
	item->key = key;
	bpf_spin_lock(&lock);
	result = at_end ? bpf_list_push_back_impl(&list, &item->node, NULL, 0) :
			  bpf_list_push_front_impl(&list, &item->node, NULL, 0);
	bpf_spin_unlock(&lock);
	return result;
}

static long pop(bool at_end)
{
	struct bpf_list_node *node;
	struct item *item;
	long key;

	bpf_spin_lock(&lock);
	node = at_end ? bpf_list_pop_back(&list) : bpf_list_pop_front(&list);
	bpf_spin_unlock(&lock);
	if (!node)
		return 9;
	item = container(node, struct item, node);
	key = item->key;
	bpf_obj_drop_impl(item, NULL);
	return key;
}

SEC("syscall")
int lists(void *ctx)
{
	int result = push(1, true) | push(2, true) | push(3, false) | push(4, true);

	/* 3 1 2 4 */
	result = result * 10 + pop(false);
	result = result * 10 + pop(true);
	result = result * 10 + pop(false);
	result = result * 10 + pop(false);
	return result * 10 + pop(true);
}

SEC("syscall")
int list_ends(void *ctx)
{
	struct bpf_list_node *front, *back;
	long keys = 0;

	bpf_spin_lock(&lock);
	front = bpf_list_front(&list);
	bpf_spin_unlock(&lock);
	if (front || push(5, true) || push(6, true))
		return -1;
	bpf_spin_lock(&lock);
	front = bpf_list_front(&list);
	back = bpf_list_back(&list);
	if (front && back)
		keys = container(front, struct item, node)->key * 10 +
		       container(back, struct item, node)->key;
	bpf_spin_unlock(&lock);
	return keys * 100 + pop(false) * 10 + pop(false);
}

static bool is_less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return container(a, struct item, sorted)->key < container(b, struct item, sorted)->key;
}

static int insert(long key)
{
	struct item *item = bpf_obj_new(struct item);
	int result;

	if (!item)
		return -1;
	item->key = key;
	bpf_spin_lock(&tree_lock);
	result = bpf_rbtree_add_impl(&tree, &item->sorted, is_less, NULL, 0);
	bpf_spin_unlock(&tree_lock);
	return result;
}

static long take_first(void)
{
	struct bpf_rb_node *node;
	struct item *item;
	long key;

	bpf_spin_lock(&tree_lock);
	node = bpf_rbtree_first(&tree);
	if (!node) {
		bpf_spin_unlock(&tree_lock);
		return -1;
	}
	node = bpf_rbtree_remove(&tree, node);
	bpf_spin_unlock(&tree_lock);
	if (!node)
		return -2;
	item = container(node, struct item, sorted);
	key = item->key;
	bpf_obj_drop_impl(item, NULL);
	return key;
}

SEC("syscall")
int trees(void *ctx)
{
	long last = -1, key;
	int i;

	for (i = 0; i < 20; i++)
		if (insert(i * 7 % 20))
			return -1;
	for (i = 0; i < 20; i++) {
		key = take_first();
		if (key != last + 1)
			return -100 - i;
		last = key;
	}
	return take_first() == -1 ? 1 : 2;
}

/* Where a walk down to a key goes: 1, and a digit for each step, 1 left and 2 right. */
static int way(long key)
{
	struct bpf_rb_node *node;
	int result = 1, i;
	long here;

	bpf_spin_lock(&tree_lock);
	node = bpf_rbtree_root(&tree);
	for (i = 0; i < 8 && node; i++) {
		here = container(node, struct item, sorted)->key;
		if (here == key)
			break;
		if (key < here) {
			node = bpf_rbtree_left(&tree, node);
			result = result * 10 + 1;
		} else {
			node = bpf_rbtree_right(&tree, node);
			result = result * 10 + 2;
		}
	}
	bpf_spin_unlock(&tree_lock);
	return result;
}

/* A sum over where all keys are, which knows the tree's shape. */
SEC("syscall")
int shape(void *ctx)
{
	int sum = 0, i;

	for (i = 0; i < 16; i++)
		if (insert(i * 11 % 16))
			return -1;
	for (i = 0; i < 16; i++)
		sum = sum * 3 + way(i);
	for (i = 0; i < 6; i++)
		take_first();
	for (i = 6; i < 16; i++)
		sum = sum * 3 + way(i);
	while (i-- > 6)
		take_first();
	return sum;
}

SEC("syscall")
int shared(void *ctx)
{
	struct item *item = bpf_obj_new(struct item), *other;
	struct bpf_rb_node *node;
	int result = 0;

	if (!item)
		return -1;
	item->key = 42;
	other = bpf_refcount_acquire_impl(item, NULL);
	if (!other) {
		bpf_obj_drop_impl(item, NULL);
		return -2;
	}
	bpf_spin_lock(&lock);
	result |= bpf_list_push_back_impl(&list, &item->node, NULL, 0);
	bpf_spin_unlock(&lock);
	bpf_spin_lock(&tree_lock);
	result |= bpf_rbtree_add_impl(&tree, &other->sorted, is_less, NULL, 0);
	node = bpf_rbtree_first(&tree);
	if (node)
		container(node, struct item, sorted)->key += 1;
	bpf_spin_unlock(&tree_lock);
	if (result)
		return -3;
	return pop(false) * 100 + take_first();
}

SEC("syscall")
int twice(void *ctx)
{
	struct item *item = bpf_obj_new(struct item), *other;
	int first, second;

	if (!item)
		return -1;
	other = bpf_refcount_acquire_impl(item, NULL);
	bpf_spin_lock(&lock);
	first = bpf_list_push_back_impl(&list, &item->node, NULL, 0);
	bpf_spin_unlock(&lock);
	if (!other)
		return -2;
	bpf_spin_lock(&lock);
	second = bpf_list_push_front_impl(&list, &other->node, NULL, 0);
	bpf_spin_unlock(&lock);
	pop(false);
	return first * 100 + second;
}

#define mask(name) ((const struct cpumask *)name)

SEC("syscall")
int cpus(void *ctx)
{
	struct bpf_cpumask *a = bpf_cpumask_create(), *b, *c;
	int result = 0;

	if (!a)
		return -1;
	b = bpf_cpumask_create();
	if (!b) {
		bpf_cpumask_release(a);
		return -2;
	}
	result |= !!bpf_cpumask_empty(mask(a));
	bpf_cpumask_set_cpu(0, a);
	result |= !!bpf_cpumask_test_and_set_cpu(0, a) << 1;
	bpf_cpumask_set_cpu(100000, a);
	result |= (bpf_cpumask_weight(mask(a)) == 1) << 2;
	bpf_cpumask_setall(b);
	result |= !!bpf_cpumask_full(mask(b)) << 3;
	result |= !!bpf_cpumask_subset(mask(a), mask(b)) << 4;
	result |= (!bpf_cpumask_subset(mask(b), mask(a)) ||
		   bpf_cpumask_weight(mask(b)) == 1) << 5;
	result |= !!bpf_cpumask_and(b, mask(b), mask(a)) << 6;
	result |= !!bpf_cpumask_equal(mask(a), mask(b)) << 7;
	bpf_cpumask_xor(b, mask(a), mask(b));
	result |= !!bpf_cpumask_empty(mask(b)) << 8;
	result |= (bpf_cpumask_first(mask(a)) == 0) << 9;
	result |= (bpf_cpumask_first(mask(b)) == bpf_cpumask_first_zero(mask(a)) ||
		   bpf_cpumask_first_zero(mask(a)) == 1) << 10;
	c = bpf_cpumask_acquire(a);
	bpf_cpumask_clear_cpu(0, a);
	result |= !bpf_cpumask_test_cpu(0, mask(c)) << 11;
	bpf_cpumask_release(c);
	bpf_cpumask_set_cpu(0, a);
	result |= (bpf_cpumask_any_distribute(mask(a)) == 0) << 12;
	bpf_cpumask_clear(a);
	result |= !!bpf_cpumask_empty(mask(a)) << 13;
	bpf_cpumask_release(a);
	bpf_cpumask_release(b);
	return result;
}

SEC("syscall")
int sections(void *ctx)
{
	unsigned long outer, inner;

	bpf_rcu_read_lock();
	bpf_preempt_disable();
	bpf_preempt_disable();
	bpf_preempt_enable();
	bpf_preempt_enable();
	bpf_rcu_read_unlock();
	bpf_local_irq_save(&outer);
	bpf_local_irq_save(&inner);
	bpf_local_irq_restore(&inner);
	bpf_local_irq_restore(&outer);
	return 7;
}

char text[] = "hello, hello";
char other[] = "Hello, HELLO";
char set[] = "leh";
char part[] = "lo, h";
char end[] = "hello";
__u64 nowhere = 0;
int results[32];

SEC("syscall")
int strings(void *ctx)
{
	int *r = results;

	r[0] = bpf_strcmp(text, text);
	r[1] = bpf_strcmp(text, other);
	r[2] = bpf_strcmp(other, text);
	r[3] = bpf_strcasecmp(text, other);
	r[4] = bpf_strchr(text, 'o');
	r[5] = bpf_strchr(text, 'x');
	r[6] = bpf_strchr(text, 0);
	r[7] = bpf_strchrnul(text, 'x');
	r[8] = bpf_strnchr(text, 4, 'o');
	r[9] = bpf_strnchr(text, 5, 'o');
	r[10] = bpf_strrchr(text, 'h');
	r[11] = bpf_strrchr(text, 0);
	r[12] = bpf_strrchr(text, 'x');
	r[13] = bpf_strlen(text);
	r[14] = bpf_strnlen(text, 5);
	r[15] = bpf_strnlen(text, 50);
	r[16] = bpf_strspn(text, set);
	r[17] = bpf_strcspn(text, part);
	r[18] = bpf_strstr(text, part);
	r[19] = bpf_strstr(text, other);
	r[20] = bpf_strnstr(text, part, 7);
	r[21] = bpf_strnstr(text, part, 8);
	r[22] = bpf_strnstr(text, end, 4);
	r[23] = bpf_strnstr(text, end, 5);
	r[24] = bpf_strlen((const char *)nowhere);
	r[25] = bpf_strlen((const char *)4096);
	r[26] = bpf_strchr(text, ',');
	r[27] = bpf_strnchr(text, 0, 'h');
	r[28] = bpf_strcspn(text, set + 3);
	r[29] = bpf_strstr(text, set + 3);
	r[30] = bpf_strnstr(text, set + 3, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
