//! bpflab: a BPF program at home without a kernel.

pub mod btf;
#[cfg(feature = "cli")]
pub mod cli;
pub mod harness;
pub mod interp;
pub mod isa;
pub mod object;
pub mod program;
pub mod report;
pub mod spec;
pub mod util;
pub mod vm;

pub use harness::{Error, Result, Vm};
pub use object::{Object, ObjectError};
