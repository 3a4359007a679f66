//! System calls, in this folder and nowhere else. Each function of its files is safe
//! for the rest of the crate: it builds what the kernel reads from slices and from file
//! descriptors that are open as long as their owners live.

#![allow(unsafe_code, reason = "system calls")]

mod bpf;
mod btf;
mod mapping;
mod maps;
mod mounts;
mod programs;

pub(super) use btf::BtfFd;
pub(super) use mapping::Mapping;
pub use maps::KernelBatch;
pub(super) use maps::{MapFd, MapRequest, NAME_LEN};
pub(super) use mounts::{Access, Folder, errno_of};
pub(super) use programs::{ProgFd, ProgRequest, RunRequest};
