//! The command line.

#![cfg(feature = "cli")]

#[path = "../shared/mod.rs"]
mod shared;

mod behaviour;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod guest;
mod inspect;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernels;
mod transcripts;
