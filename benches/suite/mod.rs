//! The benchmark programs, and the engines that run them.
//!
//! | file | what |
//! |---|---|
//! | `programs` | the programs: their inputs, and where they can run |
//! | `inputs` | the bytes that they work on |
//! | `expected` | the same computations in plain Rust |
//! | `engine` | what an engine is here |
//! | `columns` | which there are |
//! | `maps` | single operations on maps |
//! | `ours`, `kernel`, `rbpf`, `sbpf`, `native` | the engines |

pub mod columns;
pub mod engine;
pub mod expected;
pub mod inputs;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod kernel;
pub mod maps;
pub mod native;
pub mod ours;
pub mod programs;
pub mod rbpf;
pub mod sbpf;
