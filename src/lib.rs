//! bpflab: a BPF program at home without a kernel.

pub mod btf;
pub mod isa;
pub mod object;
pub mod util;
