//! Programs attached to the running kernel: what runs, in which order, what becomes of
//! the events, what programs send, and that nothing stays behind. Programs act only on the
//! threads of these tests, and let all other events pass.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "kernel/here.rs"]
mod here;
#[path = "kernel_attach/leaving.rs"]
mod leaving;
#[path = "kernel_attach/lo_filter.rs"]
mod lo_filter;
#[path = "kernel_attach/nesting.rs"]
mod nesting;
#[path = "kernel_attach/outputs.rs"]
mod outputs;
#[path = "kernel_attach/passing.rs"]
mod passing;
#[path = "kernel_attach/perf.rs"]
mod perf;
#[path = "kernel_attach/places.rs"]
mod places;
#[path = "kernel_attach/rig.rs"]
mod rig;
mod shared;
#[path = "kernel_attach/user_space.rs"]
mod user_space;
