//! The BPF instruction set.

mod raw;

pub use raw::RawInsn;
