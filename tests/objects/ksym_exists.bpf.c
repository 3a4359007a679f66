// Weak kernel functions whose addresses are only compared with null
// (bpf_ksym_exists()): one that the kernel has, one that no kernel has.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
extern void bpflab_no_kfunc(void) __ksym __weak;

int found;

SEC("raw_tp/sys_enter")
int which(void *ctx)
{
	if (bpf_rcu_read_lock)
		found = 1;
	if (bpflab_no_kfunc)
		found += 2;
	return found;
}

SEC("raw_tp/sys_enter")
int use_if_there(void *ctx)
{
	if (bpf_rcu_read_lock) {
		bpf_rcu_read_lock();
		bpf_rcu_read_unlock();
		return 1;
	}
	return 0;
}

// The address can be compared, not followed.
SEC("?raw_tp/sys_enter")
int follow(void *ctx)
{
	return *(volatile __u64 *)bpf_rcu_read_lock != 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
