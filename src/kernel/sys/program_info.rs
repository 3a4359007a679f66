//! The kernel's information on programs: ids, counts of runs and misses.

use std::os::fd::{AsRawFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, ObjGetInfo, Result, bpf, length, open, write_address};
use super::btf::BtfFd;
use super::maps::NAME_LEN;
use super::programs::{FUNC_INFO, ProgFd};
use crate::util::Errno;

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

/// What the kernel tells of a program's types.
#[derive(Debug)]
pub struct ProgramTypes {
    /// The number of its type.
    pub prog_type: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Its BTF; none if it was loaded without.
    pub btf: Option<BtfFd>,
    /// The records of its functions, of 8 bytes each.
    pub func_info: Vec<u8>,
    /// What it attaches to by BTF, in the kernel's or in another program's; 0 for nothing.
    pub attach_btf_id: u32,
}

/// `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default, FromBytes, IntoBytes)]
struct Info {
    prog_type: u32,
    id: u32,
    tag: [u8; 8],
    jited_prog_len: u32,
    xlated_prog_len: u32,
    jited_prog_insns: u64,
    xlated_prog_insns: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; NAME_LEN],
    ifindex: u32,
    gpl_compatible: u32,
    netns_dev: u64,
    netns_ino: u64,
    nr_jited_ksyms: u32,
    nr_jited_func_lens: u32,
    jited_ksyms: u64,
    jited_func_lens: u64,
    btf_id: u32,
    func_info_rec_size: u32,
    func_info: u64,
    nr_func_info: u32,
    nr_line_info: u32,
    line_info: u64,
    jited_line_info: u64,
    nr_jited_line_info: u32,
    line_info_rec_size: u32,
    jited_line_info_rec_size: u32,
    nr_prog_tags: u32,
    prog_tags: u64,
    run_time_ns: u64,
    run_cnt: u64,
    recursion_misses: u64,
    verified_insns: u32,
    attach_btf_obj_id: u32,
    attach_btf_id: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default, FromBytes, IntoBytes)]
struct GetNextId {
    /// Or the id of the program to open.
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
    /// `BPF_PROG_GET_FD_BY_ID`.
    pub fn by_id(id: u32) -> Result<Self> {
        let mut attributes = GetNextId {
            start_id: id,
            ..GetNextId::default()
        };
        // SAFETY: no addresses.
        unsafe { open(Cmd::ProgGetFdById, &mut attributes) }.map(Self::from)
    }

    /// The kernel's counters, and the program's id.
    pub fn info(&self) -> Result<ProgramInfo> {
        let info = self.read_info(&mut [])?;
        Ok(ProgramInfo {
            id: info.id,
            jited_len: info.jited_prog_len,
            run_count: info.run_cnt,
            run_time_ns: info.run_time_ns,
            missed: info.recursion_misses,
            verified_insns: info.verified_insns,
        })
    }

    /// The program's types.
    pub fn types(&self) -> Result<ProgramTypes> {
        let count = self.read_info(&mut [])?.nr_func_info as usize;
        let mut func_info = vec![0; count * FUNC_INFO as usize];
        let info = self.read_info(&mut func_info)?;
        let name = info.name.split(|byte| *byte == 0).next();
        Ok(ProgramTypes {
            prog_type: info.prog_type,
            name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            btf: match info.btf_id {
                0 => None,
                id => Some(BtfFd::by_id(id)?),
            },
            func_info,
            attach_btf_id: info.attach_btf_id,
        })
    }

    /// `BPF_OBJ_GET_INFO_BY_FD`, which writes as many records of functions as there is room for.
    fn read_info(&self, func_info: &mut [u8]) -> Result<Info> {
        let count = length(func_info.len())? / FUNC_INFO;
        let mut info = Info {
            // The kernel takes no size of records where there are none.
            func_info_rec_size: if count > 0 { FUNC_INFO } else { 0 },
            nr_func_info: count,
            func_info: write_address(func_info),
            ..Info::default()
        };
        let mut attributes = ObjGetInfo {
            bpf_fd: self.as_fd().as_raw_fd(),
            info_len: length(size_of::<Info>())?,
            info: write_address(info.as_mut_bytes()),
        };
        // SAFETY: the structure has as many bytes as passed, and the records as many as it says,
        // both borrowed mutably; the other lengths and addresses in it are 0.
        unsafe { bpf(Cmd::ObjGetInfoByFd, &mut attributes) }?;
        Ok(info)
    }
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
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn fields_stand_where_the_header_has_them() {
        assert_eq!(offset_of!(Info, name), 64);
        assert_eq!(offset_of!(Info, btf_id), 128);
        assert_eq!(offset_of!(Info, run_time_ns), 192);
        assert_eq!(offset_of!(Info, attach_btf_id), 224);
        assert_eq!(size_of::<Info>(), 232);
    }
}
