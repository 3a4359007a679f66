//! What is asked of the running kernel.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "../shared/mod.rs"]
mod shared;

mod attach;
mod bench;
mod cli;
mod corpus;
mod equality;
mod foreign;
mod helpers;
mod instrument;
mod kernel_types;
mod kfuncs;
mod light_skeletons;
mod loaders;
mod maps;
mod maps_kinds;
mod net;
mod objects;
mod tokens;
mod verdicts;
