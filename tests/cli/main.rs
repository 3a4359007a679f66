//! The command line.

#![cfg(feature = "cli")]

#[path = "../shared/mod.rs"]
mod shared;

mod behaviour;
mod bench;
mod cover;
mod explain;
mod findings;
mod given;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod guest;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod guest_arm64;
mod inspect;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernels;
mod needs;
mod other_builds;
mod pages;
mod shell;
mod suites;
mod transcripts;
