// A kfunc that may sleep is called in an RCU read section.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern int bpf_copy_from_user_str(void *dst, __u32 dst__sz, const void *unsafe_ptr__ign,
				  __u64 flags) __ksym;

char name[16];

SEC("syscall")
int copy_name(void *ctx)
{
	bpf_rcu_read_lock();
	bpf_copy_from_user_str(name, sizeof(name), (void *)0x1000, 0);
	bpf_rcu_read_unlock();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
