//! Attach points: which hooks there are, who runs there in which order, who is skipped,
//! and what the kernel makes of the results.
//!
//! All of it is data: [`Hook`] is a table with a row for each kind of place. A row names
//! the [`Guard`] that keeps programs from running inside one another, the [`Order`] of
//! several programs, and how their [`Results`] become one.
//!
//! # A tracepoint, from its call to the perf buffer
//!
//! `trace_sched_switch()` calls the probes that are registered, each in turn. Raw
//! tracepoints (`raw_tp`, `tp_btf`) are such probes themselves. For programs of type
//! `tracepoint` and for readers of perf events there is one more:
//!
//! 1. `perf_trace_<class>` (`include/trace/perf.h`) sizes the record, takes one of four
//!    buffers for the CPU, by context (task, soft interrupt, interrupt, NMI;
//!    `perf_trace_buf_alloc`). A tracepoint that is hit while the buffer of the same
//!    context is in use ends here: nobody hears of it, no counter rises
//!    ([`MissedWhy::Recursion`]).
//! 2. It fills the record, all but the common fields.
//! 3. `perf_trace_run_bpf_submit` (`kernel/events/core.c`) puts the address of the
//!    registers over the first 8 bytes, which programs therefore can't read, and calls
//! 4. `trace_call_bpf` (`kernel/trace/bpf_trace.c`): if `bpf_prog_active` shows that a
//!    program of a guarded kind runs on this CPU, the whole list is skipped, each of its
//!    programs counts a miss, and the event is dropped. Otherwise all programs run in the
//!    order of attachment, and their `u32` results are ANDed bitwise, starting at 1.
//! 5. Only where that is not 0, `perf_tp_event` writes the common fields over the first 8
//!    bytes and hands the record, raw, to each perf event that listens.
//!
//! So 0 drops the event, 1 and 3 pass it on, and 2, whose lowest bit is 0, drops it.
//! System-call tracepoints do the same with one difference: programs get a
//! `struct syscall_tp_t` of their own, perf the record (`kernel/trace/trace_syscalls.c`).
//!
//! # Functions
//!
//! A trampoline runs `fentry` programs, then `fmod_ret` ones (and, on `bpf_lsm_…`
//! functions, `lsm` ones, which are the same to it) until one returns something else
//! than 0: that is the function's result then, and the function is not called. `fexit`
//! programs come last and see the result. Each list begins with the program that was
//! attached last (`bpf_trampoline_link_prog`, `kernel/bpf/trampoline.c`).

mod guard;
mod hook;
mod results;
mod sessions;
mod site;

pub use guard::{Guards, Level, MissedWhy};
pub use hook::{Fires, Guard, Hook, HookRule, Order, Results};
pub use results::{Tally, Then};
pub use sessions::Sessions;
pub use site::{BranchEntry, Counter, Session, Site};
