//! The kernel's limits, each with its kernel name and source file.

/// Bytes of stack in a frame, and in all frames together (`MAX_BPF_STACK`,
/// `include/linux/filter.h`).
pub const STACK_SIZE: usize = 512;
/// Frames of bpf-to-bpf calls, including the main program's (`MAX_CALL_FRAMES`,
/// `include/linux/bpf_verifier.h`).
pub const MAX_CALL_FRAMES: usize = 8;
/// Tail calls in one run (`MAX_TAIL_CALL_CNT`, `include/linux/bpf.h`).
pub const MAX_TAIL_CALLS: u32 = 33;
/// Bytes of stack in all frames together, in a subprogram from which a tail call is
/// reachable (`check_max_stack_depth`, `kernel/bpf/verifier.c`).
pub const MAX_TAIL_CALL_STACK: usize = 256;
/// Functions of a program (`BPF_MAX_SUBPROGS`, `include/linux/bpf_verifier.h`).
pub const MAX_SUBPROGS: usize = 256;
/// Registers that carry arguments (`MAX_BPF_FUNC_REG_ARGS`,
/// `include/linux/bpf.h`).
pub const MAX_REG_ARGS: usize = 5;
/// Arguments of a traced kernel function that a tracing program sees (`MAX_BPF_FUNC_ARGS`,
/// `include/linux/bpf.h`).
pub const MAX_FUNC_ARGS: usize = 12;

/// The highest number of a type in BTF (`BTF_MAX_TYPE`, `include/uapi/linux/btf.h`).
pub const MAX_BTF_TYPE: u32 = 0x000f_ffff;

/// Instructions of a program loaded with `CAP_BPF`, and instructions that the verifier
/// processes (`BPF_COMPLEXITY_LIMIT_INSNS`, `include/linux/bpf.h`).
pub const MAX_INSNS: usize = 1_000_000;
/// Instructions of an unprivileged program (`BPF_MAXINSNS`,
/// `include/uapi/linux/bpf_common.h`).
pub const MAX_INSNS_UNPRIVILEGED: usize = 4096;
/// Pending branches of the exploration (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`,
/// `kernel/bpf/verifier.c`).
pub const MAX_JUMP_SEQUENCE: usize = 8192;
/// Explored states of an instruction while an unprivileged program is verified
/// (`BPF_COMPLEXITY_LIMIT_STATES`, `kernel/bpf/verifier.c`).
pub const MAX_STATES: usize = 64;
/// Maps that a program uses (`MAX_USED_MAPS`, `include/linux/bpf_verifier.h`).
pub const MAX_USED_MAPS: usize = 64;
/// BTF objects that a program uses (`MAX_USED_BTFS`,
/// `include/linux/bpf_verifier.h`).
pub const MAX_USED_BTFS: usize = 64;
/// Kfuncs that a program calls (`MAX_KFUNC_DESCS`, `kernel/bpf/verifier.c`).
pub const MAX_KFUNCS: usize = 256;
/// Maximum offset of a pointer in either direction, exclusive (`BPF_MAX_VAR_OFF`,
/// `include/linux/bpf_verifier.h`).
pub const MAX_VAR_OFFSET: i64 = 1 << 29;
/// Bytes of a value that the verifier supports, exclusive (`BPF_MAX_VAR_SIZ`,
/// `include/linux/bpf_verifier.h`).
pub const MAX_VAR_SIZE: u64 = 1 << 29;
/// Maximum offset of a packet pointer (`MAX_PACKET_OFF`, `kernel/bpf/verifier.c`).
pub const MAX_PACKET_OFFSET: u32 = 0xffff;
/// Bytes of a syscall program's context (`U16_MAX`, `syscall_prog_is_valid_access`,
/// `kernel/bpf/syscall.c`).
pub const MAX_SYSCALL_CONTEXT: usize = 0xffff;

/// Bytes of an object's name, including the NUL (`BPF_OBJ_NAME_LEN`,
/// `include/uapi/linux/bpf.h`).
pub const OBJECT_NAME_LEN: usize = 16;
/// Bytes of a task's command name, including the NUL (`TASK_COMM_LEN`,
/// `include/linux/sched.h`).
pub const TASK_COMM_LEN: usize = 16;
/// Bytes of a symbol's name, including the NUL (`KSYM_NAME_LEN`,
/// `include/linux/kallsyms.h`).
pub const SYMBOL_NAME_LEN: usize = 512;
/// Directory in which libbpf pins maps with `LIBBPF_PIN_BY_NAME`.
pub const PIN_PATH: &str = "/sys/fs/bpf";

/// Iterations of `bpf_loop` (`BPF_MAX_LOOPS`, `kernel/bpf/bpf_iter.c`).
pub const MAX_LOOPS: u32 = 1 << 23;
/// Iterations of a function's `may_goto` loops if the kernel's JIT does not check the time
/// (`BPF_MAX_LOOPS`, `kernel/bpf/verifier.c`). The JITs of x86-64 and arm64 do: there a
/// loop ends after 250 ms, whatever the number of iterations (`bpf_check_timed_may_goto`,
/// `kernel/bpf/core.c`).
pub const MAX_MAY_GOTO: u32 = 1 << 23;

/// Arguments of `trace_printk` after the format (`MAX_TRACE_PRINTK_VARARGS`,
/// `kernel/trace/bpf_trace.c`).
pub const MAX_TRACE_PRINTK_ARGS: usize = 3;
/// Arguments of the printing helpers with an argument array (`MAX_BPRINTF_VARARGS`,
/// `include/linux/bpf.h`).
pub const MAX_PRINTF_ARGS: usize = 12;
/// Bytes of a printing helper's arguments in binary form (`MAX_BPRINTF_BIN_ARGS`,
/// `include/linux/bpf.h`).
pub const MAX_PRINTF_BINARY_ARGS: usize = 512;
/// Bytes of a line that `trace_printk` prints (`MAX_BPRINTF_BUF`,
/// `include/linux/bpf.h`).
pub const MAX_PRINTF_BUFFER: usize = 1024;
/// Bytes of a ring-buffer record's header (`BPF_RINGBUF_HDR_SZ`,
/// `include/uapi/linux/bpf.h`).
pub const RINGBUF_HEADER: u32 = 8;
/// Bit of a record's length: still being written (`BPF_RINGBUF_BUSY_BIT`).
pub const RINGBUF_BUSY: u32 = 1 << 31;
/// Bit of a record's length: discarded (`BPF_RINGBUF_DISCARD_BIT`).
pub const RINGBUF_DISCARD: u32 = 1 << 30;
/// Bytes of a ring-buffer record, exclusive of its header (`RINGBUF_MAX_RECORD_SZ`,
/// `kernel/bpf/ringbuf.c`).
pub const RINGBUF_MAX_RECORD: u32 = u32::MAX / 4;

/// Bytes of a trace event's record (`PERF_MAX_TRACE_SIZE`,
/// `include/linux/trace_events.h`).
pub const MAX_TRACE_SIZE: usize = 8192;
/// Bytes of a perf record with its header (the header's `size` is a `u16`).
pub const MAX_PERF_RECORD: usize = 0xffff;
/// Frames of a recorded stack (`PERF_MAX_STACK_DEPTH`,
/// `include/uapi/linux/perf_event.h`).
pub const MAX_STACK_DEPTH: usize = 127;
/// Bytes of a build id (`BPF_BUILD_ID_SIZE`, `include/uapi/linux/bpf.h`).
pub const BUILD_ID_SIZE: usize = 20;
/// Bytes of `struct bpf_stack_build_id`.
pub const STACK_BUILD_ID_SIZE: usize = 32;

/// Maximum bytes of one slab allocation (`KMALLOC_MAX_SIZE`).
pub const KMALLOC_MAX: u32 = 1 << 22;
/// Maximum bytes of one per-CPU allocation (`PCPU_MIN_UNIT_SIZE`,
/// `include/linux/percpu.h`).
pub const PER_CPU_MAX: u32 = 32 << 10;
/// Bits of an LPM trie's prefix (`LPM_DATA_SIZE_MAX` is 256 bytes,
/// `kernel/bpf/lpm_trie.c`).
pub const LPM_MAX_PREFIX_BYTES: u32 = 256;
/// Minimum bytes of an LPM trie's prefix (`LPM_DATA_SIZE_MIN`).
pub const LPM_MIN_PREFIX_BYTES: u32 = 1;
/// Bytes of an LPM trie's value (`LPM_VAL_SIZE_MAX`).
pub const LPM_MAX_VALUE: u32 = 4_194_024;
/// Bytes of a hash map's element in addition to key and value (`struct htab_elem`,
/// `kernel/bpf/hashtab.c`).
pub const HASH_ELEMENT_HEADER: u32 = 48;
/// Bytes of a value in an object's local storage (`BPF_LOCAL_STORAGE_MAX_VALUE_SIZE`,
/// `include/linux/bpf_local_storage.h`).
pub const LOCAL_STORAGE_MAX_VALUE: u32 = 65_407;
/// CPUs of a cpumap (`NR_CPUS` of a distribution's kernel).
pub const MAX_CPUS: u32 = 8192;
/// Depth of maps in maps: an inner map may not contain maps itself.
pub const MAX_MAP_DEPTH: usize = 2;
/// Nested programs on one CPU for `perf_event_output` and `trace_printk`'s
/// buffers (`kernel/trace/bpf_trace.c`, `kernel/bpf/helpers.c`).
pub const MAX_NESTED_OUTPUT: usize = 3;
/// Minimum bytes of a packet for `BPF_PROG_TEST_RUN` (an Ethernet header,
/// `net/bpf/test_run.c`).
pub const MIN_TEST_PACKET: usize = 14;
/// Bytes of a page on x86-64, for maps whose size is in pages.
pub const PAGE_SIZE: u32 = 1 << PAGE_SHIFT;
/// The binary logarithm of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u8 = 12;
/// Bytes of a `struct bpf_dynptr` (`include/uapi/linux/bpf.h`).
pub const DYNPTR_SIZE: u32 = 16;
