//! Reads what programs output in the running kernel: ring buffers, perf buffers, lines of
//! `bpf_trace_printk`, and map contents.

mod contents;
mod perf_buffer;
mod printk;
pub(super) mod ring;

pub use contents::Contents;
pub use perf_buffer::PerfBuffer;
pub use printk::{PrintkLine, PrintkLines};
#[doc(hidden)]
pub use ring::KernelRing;
