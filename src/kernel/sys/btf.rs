//! Loads BTF into the kernel.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, ObjGetInfo, Result, bpf, length, number, open, read_address, write_address};
use super::token::TokenFd;
use crate::spec::ProgFlags;
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
    btf_flags: u32,
    btf_token_fd: i32,
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
    pub fn load(btf: &[u8], log: &mut [u8], token: Option<&TokenFd>) -> Result<Self> {
        let mut attributes = BtfLoad {
            btf: read_address(btf),
            btf_log_size: length(log.len())?,
            btf_log_level: u32::from(!log.is_empty()),
            btf_log_buf: write_address(log),
            btf_size: length(btf.len())?,
            btf_log_true_size: 0,
            // The flag has the same number for programs, maps and BTF.
            btf_flags: token.map_or(0, |_| ProgFlags::TOKEN_FD.bits()),
            btf_token_fd: number(token.map(TokenFd::as_fd)),
        };
        // SAFETY: both addresses are those of slices with their lengths; the log, which is
        // written, is borrowed mutably.
        unsafe { open(Cmd::BtfLoad, &mut attributes) }.map(Self)
    }

    /// `BPF_BTF_GET_FD_BY_ID`.
    pub fn by_id(id: u32) -> Result<Self> {
        let mut attributes = GetById {
            id,
            ..GetById::default()
        };
        // SAFETY: no addresses.
        unsafe { open(Cmd::BtfGetFdById, &mut attributes) }.map(Self)
    }

    /// The types as the kernel has them.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut info = BtfInfo::default();
        self.read_info(&mut info)?;
        let mut bytes = vec![0; info.btf_size as usize];
        let mut info = BtfInfo {
            btf: write_address(&mut bytes),
            btf_size: info.btf_size,
            ..BtfInfo::default()
        };
        self.read_info(&mut info)?;
        Ok(bytes)
    }

    /// The BTF of a loaded module (`BPF_BTF_GET_NEXT_ID` over all tables in the kernel).
    pub fn of_module(name: &str) -> Result<Self> {
        let mut next = GetById::default();
        loop {
            next.next_id = 0;
            // SAFETY: no addresses.
            unsafe { bpf(Cmd::BtfGetNextId, &mut next) }?;
            next.id = next.next_id;
            let fd = match Self::by_id(next.id) {
                Ok(fd) => fd,
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
        match self.read_info(&mut info) {
            Ok(()) => {}
            // The name is longer than a module's.
            Err(Errno::ENOSPC) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        let len = bytes.iter().position(|byte| *byte == 0);
        let found = bytes.get(..len.unwrap_or(bytes.len()));
        Ok(info.kernel_btf != 0 && found == Some(name.as_bytes()))
    }

    /// `BPF_OBJ_GET_INFO_BY_FD`. The addresses in `info` are 0, or those of buffers of the sizes
    /// in it, to which nothing else refers.
    fn read_info(&self, info: &mut BtfInfo) -> Result<()> {
        let mut attributes = ObjGetInfo {
            bpf_fd: self.as_fd().as_raw_fd(),
            info_len: length(size_of::<BtfInfo>())?,
            info: write_address(info.as_mut_bytes()),
        };
        // SAFETY: the structure has as many bytes as passed, borrowed mutably, and the callers in
        // this file keep the rule for the buffers.
        unsafe { bpf(Cmd::ObjGetInfoByFd, &mut attributes) }.map(drop)
    }

    /// The descriptor, for maps and programs with BTF types.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
