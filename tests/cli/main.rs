//! The command line.

#![cfg(feature = "cli")]

#[path = "../shared/mod.rs"]
mod shared;

mod behaviour;
mod inspect;
mod transcripts;
