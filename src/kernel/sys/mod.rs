//! All system calls of bpflab. Each function here is safe for the rest of the crate: it builds
//! the kernel's arguments from slices and from file descriptors whose owners keep them open.

#![allow(unsafe_code, reason = "system calls")]

mod bpf;
mod btf;
mod capabilities;
pub(super) mod cpu_count;
mod device;
pub(crate) mod init;
mod links;
mod machine;
mod mapping;
mod maps;
mod mounts;
mod perf;
mod poll;
mod process;
mod program_info;
mod programs;
mod token;
mod unused_call;
mod watchdog;

pub(super) use bpf::errno_of;
pub(super) use btf::BtfFd;
pub(super) use capabilities::DroppedCapabilities;
pub(super) use device::device_index;
#[cfg(feature = "cli")]
pub(crate) use device::set_device_up;
pub(super) use links::{BtfLink, KernelProbes, LinkFd, UserProbes};
pub(super) use machine::{boottime, monotonic, realtime, unlimit_locked_memory};
pub(super) use mapping::{Mapping, page_size};
pub use maps::KernelBatch;
pub(super) use maps::{MapFd, MapRequest, NAME_LEN};
pub(super) use mounts::{Access, Folder};
pub(super) use perf::{EventFlags, EventRequest, PerfFd, SampleType};
pub(super) use poll::{Polled, poll, poll_each};
pub(super) use process::{
    Flag, first_signal, grace_period, hold, process, raise_on_signals, send_signal,
};
pub use program_info::{ProgramInfo, RunStatistics, program_ids};
pub(super) use programs::{ProgFd, ProgRequest, RunRequest};
pub(super) use token::TokenFd;
pub use unused_call::UnusedCall;
pub(super) use watchdog::Watchdog;
