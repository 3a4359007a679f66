// The form of an object of `bpftrace --emit-elf` before 0.18: sections and functions have
// the probes' names, maps are descriptors without definitions, no license, no BTF.
// flags: -g0
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

// r1 = map[fd:N]; the name of a map of the process that wrote the object.
#define MAP_FD(fd)                                                                       \
	({                                                                               \
		void *map;                                                               \
		asm volatile(".byte 0x18, 0x11, 0, 0, " #fd ", 0, 0, 0\n\t"               \
			     ".8byte 0\n\t"                                              \
			     "%0 = r1"                                                   \
			     : "=r"(map)                                                 \
			     :                                                           \
			     : "r1");                                                    \
		map;                                                                     \
	})

// @opens[comm] = count()
SEC("s_tracepoint:syscalls:sys_enter_openat_1")
int count_opens(void *ctx) __asm__("tracepoint:syscalls:sys_enter_openat");
int count_opens(void *ctx)
{
	char comm[16] = {};
	__u64 one = 1, *count;

	bpf_get_current_comm(comm, sizeof(comm));
	count = bpf_map_lookup_elem(MAP_FD(0), comm);
	if (count)
		*count += 1;
	else
		bpf_map_update_elem(MAP_FD(0), comm, &one, BPF_ANY);
	return 0;
}

// An event of bpftrace's own: a GPL-only helper.
SEC("s_interval:s:1_1")
int tell(void *ctx) __asm__("interval:s:1");
int tell(void *ctx)
{
	__u64 action = 30000;

	bpf_perf_event_output(ctx, MAP_FD(1), BPF_F_CURRENT_CPU, &action, sizeof(action));
	return 0;
}
