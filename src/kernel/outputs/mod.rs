//! What programs send to user space, read as it comes: ring buffers, perf buffers, lines
//! of `bpf_trace_printk`, and what maps hold.

mod contents;
mod perf_buffer;
mod printk;
pub(super) mod ring;

pub use contents::Contents;
pub use perf_buffer::PerfBuffer;
pub use printk::{PrintkLine, PrintkLines};
pub use ring::KernelRing;
