// An object that a list owns is dropped.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define type_id(type) __builtin_btf_type_id(*(type *)0, 0)
#define contains(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))

struct bpf_list_head {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_node {
	__u64 __opaque[3];
} __attribute__((aligned(8)));

extern void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				    void *meta, __u64 off) __ksym;

extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;

struct item {
	__u64 key;
	struct bpf_list_node node;
};

#define private(name) SEC(".data." #name) __attribute__((aligned(8)))
private(A) struct bpf_spin_lock lock;
private(A) struct bpf_list_head list contains(item, node);

SEC("tc")
int keep(struct __sk_buff *skb)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), (void *)0);

	if (!item)
		return 0;
	bpf_spin_lock(&lock);
	bpf_list_push_front_impl(&list, &item->node, (void *)0, 0);
	bpf_spin_unlock(&lock);
	bpf_obj_drop_impl(item, (void *)0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
