//! Loads BTF into the kernel.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, length, open, read_address, write_address};

/// BTF in the kernel.
#[derive(Debug)]
pub struct BtfFd(OwnedFd);

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct BtfLoad {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
    btf_log_level: u32,
    btf_log_true_size: u32,
}

impl BtfFd {
    /// `BPF_BTF_LOAD`, which writes the kernel's log to `log` unless that is empty.
    pub fn load(btf: &[u8], log: &mut [u8]) -> Result<Self> {
        let mut attributes = BtfLoad {
            btf: read_address(btf),
            btf_log_size: length(log.len())?,
            btf_log_level: u32::from(!log.is_empty()),
            btf_log_buf: write_address(log),
            btf_size: length(btf.len())?,
            btf_log_true_size: 0,
        };
        // SAFETY: both addresses are those of slices with their lengths; the log, which is
        // written, is borrowed mutably.
        unsafe { open(Cmd::BtfLoad, &mut attributes) }.map(Self)
    }

    /// The descriptor, for maps and programs with BTF types.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
