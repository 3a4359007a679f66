//! The kernel's information on programs: ids, counts of runs and misses.

use std::os::fd::{AsRawFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, ObjGetInfo, Result, bpf, length, open, write_address};
use super::programs::ProgFd;
use crate::util::{Errno, ReadError, Reader};

/// The kernel's information on a program (`struct bpf_prog_info`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// The id that `bpftool prog` shows.
    pub id: u32,
    /// Size of its machine code in bytes; 0 if it is not JIT-compiled.
    pub jited_len: u32,
    /// How often it ran while [`RunStatistics`] were enabled.
    pub run_count: u64,
    /// Total time of these runs in nanoseconds.
    pub run_time_ns: u64,
    /// How often it was skipped, because it or another of its hook was running on that CPU.
    pub missed: u64,
    /// Instructions that the verifier processed.
    pub verified_insns: u32,
}

/// Bytes of `struct bpf_prog_info` up to the last field used, and the offsets of these fields.
const INFO: usize = 232;
const ID: usize = 4;
const JITED_LEN: usize = 16;
const RUN_TIME: usize = 192;

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct GetNextId {
    start_id: u32,
    next_id: u32,
    open_flags: u32,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct EnableStats {
    /// `BPF_STATS_RUN_TIME` is 0.
    stats: u32,
}

impl ProgFd {
    /// `BPF_OBJ_GET_INFO_BY_FD`.
    pub fn info(&self) -> Result<ProgramInfo> {
        let mut bytes = [0; INFO];
        let mut attributes = ObjGetInfo {
            bpf_fd: self.as_fd().as_raw_fd(),
            info_len: length(bytes.len())?,
            info: write_address(&mut bytes),
        };
        // SAFETY: the buffer has as many bytes as passed; all lengths and addresses of lists in
        // it are 0, so nothing else is written.
        unsafe { bpf(Cmd::ObjGetInfoByFd, &mut attributes) }?;
        parse(&bytes).map_err(|_| Errno::EINVAL)
    }
}

fn parse(bytes: &[u8]) -> std::result::Result<ProgramInfo, ReadError> {
    let mut counts = Reader::at(bytes, RUN_TIME);
    Ok(ProgramInfo {
        id: Reader::at(bytes, ID).u32()?,
        jited_len: Reader::at(bytes, JITED_LEN).u32()?,
        run_time_ns: counts.u64()?,
        run_count: counts.u64()?,
        missed: counts.u64()?,
        verified_insns: counts.u32()?,
    })
}

/// `BPF_PROG_GET_NEXT_ID`: the ids of all programs in the kernel, in ascending order.
///
/// # Errors
/// The kernel's error: `EPERM` without `CAP_SYS_ADMIN`.
pub fn program_ids() -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    loop {
        let mut attributes = GetNextId {
            start_id: ids.last().copied().unwrap_or(0),
            next_id: 0,
            open_flags: 0,
        };
        // SAFETY: no addresses.
        match unsafe { bpf(Cmd::ProgGetNextId, &mut attributes) } {
            Ok(_) => ids.push(attributes.next_id),
            Err(Errno::ENOENT) => return Ok(ids),
            Err(errno) => return Err(errno),
        }
    }
}

/// Makes the kernel count and time the runs of all programs while this value lives
/// (`BPF_ENABLE_STATS`). This adds some 20 nanoseconds to each run.
#[derive(Debug)]
pub struct RunStatistics {
    _fd: OwnedFd,
}

impl RunStatistics {
    /// Starts counting.
    ///
    /// # Errors
    /// The kernel's error: `EPERM` without `CAP_SYS_ADMIN`.
    pub fn enable() -> Result<Self> {
        let mut attributes = EnableStats { stats: 0 };
        // SAFETY: no addresses.
        let fd = unsafe { open(Cmd::EnableStats, &mut attributes) }?;
        Ok(Self { _fd: fd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_the_header_has_them() {
        let mut bytes = [0; INFO];
        bytes[4] = 7;
        bytes[16] = 8;
        bytes[192] = 1;
        bytes[200] = 2;
        bytes[208] = 3;
        bytes[216] = 4;
        let info = ProgramInfo {
            id: 7,
            jited_len: 8,
            run_time_ns: 1,
            run_count: 2,
            missed: 3,
            verified_insns: 4,
        };
        assert_eq!(parse(&bytes), Ok(info));
    }
}
