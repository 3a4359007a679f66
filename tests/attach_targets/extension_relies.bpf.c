// Extensions that rely on more than callers of the function in target.bpf.c pass. Linux accepts
// them (docs/findings.md), so they are never attached.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

// The target's has 8 bytes.
struct pair {
	int a;
	int b;
	int c;
	int d;
};

SEC("freplace/paired")
int reads_behind(struct pair *pair)
{
	return pair ? pair->d : 0;
}

#define nonnull __attribute__((btf_decl_tag("arg:nonnull")))

// Of the target's size, by another type of the same name, which only this function has.
#pragma clang diagnostic ignored "-Wvisibility"
SEC("freplace/paired")
int never_null(struct pair { int a, b; } *pair nonnull)
{
	return pair->a;
}
