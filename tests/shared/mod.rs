//! What test crates share.
#![allow(dead_code, unused_imports, reason = "each test crate uses part of it")]

pub mod case;
#[cfg(feature = "cli")]
pub mod command;
pub mod corpus;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod here;
pub mod law;
pub mod machine;
#[cfg(feature = "cli")]
pub mod packages;
pub mod sample;
pub mod score;
pub mod skip;
pub mod snippet;
pub mod tally;

pub use skip::*;
