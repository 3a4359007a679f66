//! The benchmark programs, and the engines that run them.
//!
//! | file | what |
//! |---|---|
//! | `programs` | the programs: their inputs, and where they can run |
//! | `inputs` | their input bytes |
//! | `expected` | the same computations in plain Rust |
//! | `engine` | the interface of an engine |
//! | `columns` | the engines of the table's columns |
//! | `maps` | single operations on maps |
//! | `ours`, `kernel`, `rbpf`, `sbpf`, `native` | the engines |
//! | `installed` | libraries of peers in C and C++, where the machine has them |
//! | `ubpf`, `llvmbpf` | their engines |

pub mod columns;
pub mod engine;
pub mod expected;
pub mod inputs;
pub mod installed;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod kernel;
pub mod llvmbpf;
pub mod maps;
pub mod native;
pub mod ours;
pub mod programs;
pub mod rbpf;
pub mod sbpf;
pub mod ubpf;
