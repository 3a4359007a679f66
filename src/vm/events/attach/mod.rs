//! Attach points: the hooks, in which order their programs run, when programs are skipped, and
//! how their return values are combined.
//!
//! [`Hook`] is a table with a row per kind of hook. A row has the guard that prevents
//! recursion, the order of several programs, and how their results are combined.
//!
//! # A tracepoint, from its call to the perf buffer
//!
//! `trace_sched_switch()` calls each registered probe in turn. Raw tracepoint programs
//! (`raw_tp`, `tp_btf`) are such probes themselves. Programs of type `tracepoint` and readers
//! of perf events share another probe:
//!
//! 1. `perf_trace_<class>` (`include/trace/perf.h`) computes the record's size and takes one
//!    of the CPU's four buffers, by context (task, softirq, hardirq, NMI;
//!    `perf_trace_buf_alloc`). If the context's buffer is already in use, the event is dropped
//!    without counting a miss ([`MissedWhy::Recursion`]).
//! 2. It fills the record, except for the common fields.
//! 3. `perf_trace_run_bpf_submit` (`kernel/events/core.c`) stores the address of the
//!    registers in the first 8 bytes, which programs therefore can't read, and calls
//! 4. `trace_call_bpf` (`kernel/trace/bpf_trace.c`): if `bpf_prog_active` shows that a
//!    program of a guarded kind runs on this CPU, the whole list is skipped, each of its
//!    programs counts a miss, and the event is dropped. Otherwise all programs run in the
//!    order of attachment, and their `u32` results are ANDed bitwise, starting at 1.
//! 5. If the result is not 0, `perf_tp_event` writes the common fields over the first 8 bytes
//!    and hands the raw record to each perf event that listens.
//!
//! So 0 drops the event, 1 and 3 pass it on, and 2, whose lowest bit is 0, drops it.
//! System-call tracepoints differ in one point: programs get a `struct syscall_tp_t`, perf
//! gets the record (`kernel/trace/trace_syscalls.c`).
//!
//! # Functions
//!
//! A trampoline runs `fentry` programs first, then `fmod_ret` ones (and, on `bpf_lsm_…`
//! functions, `lsm` ones, which it treats the same) until one returns a nonzero value. That
//! becomes the function's return value, and the function is not called. `fexit` programs run
//! last and see the return value. Each list runs the last attached program first
//! (`bpf_trampoline_link_prog`, `kernel/bpf/trampoline.c`).

mod guard;
mod hook;
mod results;
mod sessions;
mod site;

pub use guard::{Level, MissedWhy};
pub use hook::Hook;
pub use site::BranchEntry;

#[doc(inline)]
pub use crate::vm::maps::Counter;

#[doc(hidden)]
pub use guard::Guards;
#[doc(hidden)]
pub use hook::{Fires, Guard, HookRule, Order, Results};
#[doc(hidden)]
pub use results::{Tally, Then};
#[doc(hidden)]
pub use sessions::Sessions;
#[doc(hidden)]
pub use site::{Session, Site};
