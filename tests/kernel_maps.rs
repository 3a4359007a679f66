//! Our maps against the running kernel's: what can be made, and random operations on
//! both, which must give the same results, errnos and contents.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "kernel_maps/creation.rs"]
mod creation;
#[path = "kernel_maps/evicting.rs"]
mod evicting;
#[path = "kernel/here.rs"]
mod here;
#[path = "kernel_maps/holding.rs"]
mod holding;
#[path = "kernel_maps/law.rs"]
mod law;
#[path = "kernel_maps/locking.rs"]
mod locking;
#[path = "kernel_maps/operation.rs"]
mod operation;
#[path = "kernel_maps/pair.rs"]
mod pair;
#[path = "kernel_maps/records.rs"]
mod records;
mod shared;
#[path = "kernel_maps/side.rs"]
mod side;
