//! The machine that a program lives in.

pub mod events;
pub mod memory;
mod world;

pub use world::{Clock, Random, Task, UserMemory, World};
