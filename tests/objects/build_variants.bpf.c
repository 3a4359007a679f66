// The same program as other builds leave it: big-endian, and without debug
// information (and so without BTF, which a BTF-defined map needs).
//
// build big_endian: -target bpfeb
// build no_btf: -g0
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

SEC("tp/syscalls/sys_enter_read")
int count_read(void *ctx)
{
	__u32 key = 1;
	__u64 *count = bpf_map_lookup_elem(&counts, &key);

	if (count)
		*count += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
