//! bpflab: a BPF program at home without a kernel.

pub mod btf;
pub mod isa;
pub mod program;
pub mod report;
pub mod spec;
pub mod util;
pub mod vm;
