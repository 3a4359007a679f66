//! The machine that a program lives in.

pub mod memory;
