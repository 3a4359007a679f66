//! Contexts that are neither packets nor sockets.

use super::table::layouts;

layouts! {
    /// The user's or the kernel's registers on x86-64 (`kprobe_prog_is_valid_access`,
    /// `kernel/trace/bpf_trace.c`): any aligned part is readable.
    PT_REGS_X86_64: "pt_regs", 168 bytes {
          0 r15: u64     | [p];
          8 r14: u64     | [p];
         16 r13: u64     | [p];
         24 r12: u64     | [p];
         32 bp: u64      | [p];
         40 bx: u64      | [p];
         48 r11: u64     | [p];
         56 r10: u64     | [p];
         64 r9: u64      | [p];
         72 r8: u64      | [p];
         80 ax: u64      | [p];
         88 cx: u64      | [p];
         96 dx: u64      | [p];
        104 si: u64      | [p];
        112 di: u64      | [p];
        120 orig_ax: u64 | [p];
        128 ip: u64      | [p];
        136 cs: u64      | [p];
        144 flags: u64   | [p];
        152 sp: u64      | [p];
        160 ss: u64      | [p];
    }

    /// The registers on arm64: `struct user_pt_regs`, followed by two kernel fields: the
    /// system call's first argument and number.
    PT_REGS_ARM64: "pt_regs", 288 bytes {
          0 regs: [u64; 31] | [p];
        248 sp: u64         | [p];
        256 pc: u64         | [p];
        264 pstate: u64     | [p];
        272 orig_x0: u64    | [p];
        280 syscallno: u32  | [p];
    }

    /// A perf event's sample on x86-64 (`pe_prog_is_valid_access`): registers only as a
    /// whole, the rest in parts.
    PERF_EVENT_X86_64: "bpf_perf_event_data", 184 bytes {
          0 r15: u64           | [r];
          8 r14: u64           | [r];
         16 r13: u64           | [r];
         24 r12: u64           | [r];
         32 bp: u64            | [r];
         40 bx: u64            | [r];
         48 r11: u64           | [r];
         56 r10: u64           | [r];
         64 r9: u64            | [r];
         72 r8: u64            | [r];
         80 ax: u64            | [r];
         88 cx: u64            | [r];
         96 dx: u64            | [r];
        104 si: u64            | [r];
        112 di: u64            | [r];
        120 orig_ax: u64       | [r];
        128 ip: u64            | [r];
        136 cs: u64            | [r];
        144 flags: u64         | [r];
        152 sp: u64            | [r];
        160 ss: u64            | [r];
        168 sample_period: u64 | [p];
        176 addr: u64          | [p];
    }

    /// A perf event's sample on arm64.
    PERF_EVENT_ARM64: "bpf_perf_event_data", 288 bytes {
          0 regs: [u64; 31]    | [r];
        248 sp: u64            | [r];
        256 pc: u64            | [r];
        264 pstate: u64        | [r];
        272 sample_period: u64 | [p];
        280 addr: u64          | [p];
    }

    /// A device that is being opened or created (`cgroup_dev_is_valid_access`,
    /// `kernel/bpf/cgroup.c`).
    CGROUP_DEV: "bpf_cgroup_dev_ctx", 12 bytes {
          0 access_type: u32 | [p];
          4 major: u32       | [r];
          8 minor: u32       | [r];
    }

    /// A sysctl being read or written (`sysctl_is_valid_access`, `kernel/bpf/cgroup.c`).
    SYSCTL: "bpf_sysctl", 8 bytes {
          0 write: u32    | [p];
          4 file_pos: u32 | [pw];
    }

    /// A netfilter hook (`nf_is_valid_access`, `net/netfilter/nf_bpf_link.c`).
    NETFILTER: "bpf_nf_ctx", 16 bytes {
        0 state: ptr | [hook_state];
        8 skb: ptr   | [skb];
    }

    /// A sample of an infrared receiver (`lirc_mode2_is_valid_access`,
    /// `drivers/media/rc/bpf-lirc.c`).
    LIRC_MODE2: "lirc_mode2", 4 bytes {
        0 sample: u32 | [r];
    }

    /// Arguments of a raw tracepoint (`raw_tp_prog_is_valid_access`,
    /// `kernel/trace/bpf_trace.c`): any aligned part is readable.
    RAW_TRACEPOINT: "bpf_raw_tracepoint_args", 96 bytes {
        0 args: [u64; 12] | [p];
    }
}
