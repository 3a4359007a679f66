//! Loads BTF into the kernel.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, ObjGetInfo, Result, bpf, length, open, read_address, write_address};
use crate::util::Errno;

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

#[repr(C)]
#[derive(Default, FromBytes, IntoBytes)]
struct GetById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// `struct bpf_btf_info`.
#[repr(C)]
#[derive(Default, FromBytes, IntoBytes)]
struct BtfInfo {
    btf: u64,
    btf_size: u32,
    id: u32,
    name: u64,
    name_len: u32,
    kernel_btf: u32,
}

/// Bytes of a module's name with its NUL (`MODULE_NAME_LEN`).
const MODULE_NAME: usize = 56;

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

    /// The BTF of a loaded module (`BPF_BTF_GET_NEXT_ID` over all tables in the kernel).
    pub fn of_module(name: &str) -> Result<Self> {
        let mut next = GetById::default();
        loop {
            next.next_id = 0;
            // SAFETY: no addresses.
            unsafe { bpf(Cmd::BtfGetNextId, &mut next) }?;
            next.id = next.next_id;
            let mut one = GetById {
                id: next.id,
                ..GetById::default()
            };
            // SAFETY: no addresses.
            let fd = match unsafe { open(Cmd::BtfGetFdById, &mut one) } {
                Ok(fd) => Self(fd),
                // It is gone.
                Err(Errno::ENOENT) => continue,
                Err(errno) => return Err(errno),
            };
            if fd.has_name(name)? {
                return Ok(fd);
            }
        }
    }

    /// Whether it is the kernel's BTF of this name; programs' BTF has no name.
    fn has_name(&self, name: &str) -> Result<bool> {
        let mut bytes = [0; MODULE_NAME];
        let mut info = BtfInfo {
            name: write_address(&mut bytes),
            name_len: length(bytes.len())?,
            ..BtfInfo::default()
        };
        let size = length(size_of::<BtfInfo>())?;
        let mut attributes = ObjGetInfo {
            bpf_fd: self.as_fd().as_raw_fd(),
            info_len: size,
            info: write_address(info.as_mut_bytes()),
        };
        // SAFETY: the structure has as many bytes as passed, and so has the name's buffer; the
        // other address in it is 0.
        match unsafe { bpf(Cmd::ObjGetInfoByFd, &mut attributes) } {
            Ok(_) => {}
            // The name is longer than a module's.
            Err(Errno::ENOSPC) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        let len = bytes.iter().position(|byte| *byte == 0);
        let found = bytes.get(..len.unwrap_or(bytes.len()));
        Ok(info.kernel_btf != 0 && found == Some(name.as_bytes()))
    }

    /// The descriptor, for maps and programs with BTF types.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
