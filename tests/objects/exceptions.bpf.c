// SPDX-License-Identifier: GPL-2.0
// Exceptions: bpf_throw() ends the program, from wherever it is called.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __exception_cb(name) __attribute__((btf_decl_tag("exception_callback:" #name)))

extern void bpf_throw(__u64 cookie) __ksym;

int after;

__attribute__((noinline)) static int deep(int depth)
{
	if (depth > 2)
		bpf_throw(depth + 5);
	after = after + 1;
	return depth;
}

SEC("tc")
int not_thrown(struct __sk_buff *skb)
{
	return deep(1) + after;
}

SEC("tc")
int thrown(struct __sk_buff *skb)
{
	deep(2);
	deep(3 + (skb->len > 0));
	after = 100;
	return 1;
}

SEC("tc")
int thrown_at_once(struct __sk_buff *skb)
{
	bpf_throw(64);
	return 0;
}

__attribute__((noinline)) int handler(__u64 cookie)
{
	return cookie * 2 + after;
}

SEC("tc")
__exception_cb(handler)
int handled(struct __sk_buff *skb)
{
	after = 1;
	deep(3);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
