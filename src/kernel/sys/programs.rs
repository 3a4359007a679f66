//! Loads and runs programs.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, bpf, duplicate, length, number, open, read_address, write_address};
use super::btf::BtfFd;
use super::maps::NAME_LEN;
use super::token::TokenFd;
use crate::isa::RawInsn;
use crate::spec::ProgFlags;
use crate::util::Errno;

/// A verified program in the kernel.
#[derive(Debug)]
pub struct ProgFd(OwnedFd);

/// The parameters of a load; the fields are those of `BPF_PROG_LOAD`.
#[derive(Debug, Clone, Copy)]
pub struct ProgRequest<'a> {
    pub prog_type: u32,
    pub expected_attach_type: u32,
    pub insns: &'a [u8],
    pub license: &'a CStr,
    pub name: [u8; NAME_LEN],
    pub flags: u32,
    pub attach_btf_id: u32,
    pub attach_prog_fd: u32,
    /// The program's BTF.
    pub btf: Option<&'a BtfFd>,
    /// Records of 8 bytes.
    pub func_info: &'a [u8],
    /// Records of 16 bytes.
    pub line_info: &'a [u8],
    /// The maps that instructions refer to by index; a gap gets no descriptor.
    pub maps: &'a [Option<BorrowedFd<'a>>],
    pub log_level: u32,
    pub token: Option<&'a TokenFd>,
}

/// Size in bytes of a record of `func_info` and of `line_info`.
pub(super) const FUNC_INFO: u32 = 8;
const LINE_INFO: u32 = 16;

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_LEN],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: i32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u32,
    core_relo_cnt: u32,
    fd_array: u64,
    core_relos: u64,
    core_relo_rec_size: u32,
    log_true_size: u32,
    prog_token_fd: i32,
    fd_array_cnt: u32,
}

/// Retries of a load that a signal interrupted (`EAGAIN`): libbpf has 5, but the verification of a
/// million instructions may take seconds, and was seen to be interrupted each time.
const ATTEMPTS: usize = 30;

impl From<OwnedFd> for ProgFd {
    /// The descriptor of a program.
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl ProgFd {
    /// `BPF_PROG_LOAD`, which writes a NUL-terminated log to `log`. Returns the result and the
    /// size of the whole log, 0 if the kernel does not report it.
    pub fn load(request: &ProgRequest<'_>, log: &mut [u8]) -> (Result<Self>, usize) {
        let mut left = ATTEMPTS;
        loop {
            match Self::load_once(request, log) {
                (Err(Errno::EAGAIN), _) if left > 0 => left -= 1,
                loaded => return loaded,
            }
        }
    }

    fn load_once(request: &ProgRequest<'_>, log: &mut [u8]) -> (Result<Self>, usize) {
        let fd_array: Vec<u8> = request
            .maps
            .iter()
            .flat_map(|fd| fd.map_or(-1, |fd| fd.as_raw_fd()).to_ne_bytes())
            .collect();
        let mut attributes = match Self::attributes(request, &fd_array, log) {
            Ok(attributes) => attributes,
            Err(errno) => return (Err(errno), 0),
        };
        // SAFETY: the addresses are those of slices with their lengths (the license is
        // NUL-terminated), and of the descriptors, which are borrowed. An index past their end
        // makes the kernel read other bytes of this process or fail with EFAULT: it copies the
        // descriptors and checks the copy. The log, which is written, is borrowed mutably.
        let result = unsafe { open(Cmd::ProgLoad, &mut attributes) };
        (result.map(Self), attributes.log_true_size as usize)
    }

    fn attributes(request: &ProgRequest<'_>, fd_array: &[u8], log: &mut [u8]) -> Result<ProgLoad> {
        let func_info_cnt = length(request.func_info.len())? / FUNC_INFO;
        let line_info_cnt = length(request.line_info.len())? / LINE_INFO;
        Ok(ProgLoad {
            prog_type: request.prog_type,
            insn_cnt: length(request.insns.len() / RawInsn::SIZE)?,
            insns: read_address(request.insns),
            license: read_address(request.license.to_bytes_with_nul()),
            log_level: if log.is_empty() { 0 } else { request.log_level },
            log_size: length(log.len())?,
            log_buf: write_address(log),
            kern_version: 0,
            prog_flags: request.flags | request.token.map_or(0, |_| ProgFlags::TOKEN_FD.bits()),
            prog_name: request.name,
            prog_ifindex: 0,
            expected_attach_type: request.expected_attach_type,
            prog_btf_fd: number(request.btf.map(|btf| btf.as_fd())),
            func_info_rec_size: if func_info_cnt > 0 { FUNC_INFO } else { 0 },
            func_info: read_address(request.func_info),
            func_info_cnt,
            line_info_rec_size: if line_info_cnt > 0 { LINE_INFO } else { 0 },
            line_info: read_address(request.line_info),
            line_info_cnt,
            attach_btf_id: request.attach_btf_id,
            attach_prog_fd: request.attach_prog_fd,
            core_relo_cnt: 0,
            fd_array: read_address(fd_array),
            core_relos: 0,
            core_relo_rec_size: 0,
            log_true_size: 0,
            prog_token_fd: number(request.token.map(TokenFd::as_fd)),
            fd_array_cnt: 0,
        })
    }

    /// A duplicate descriptor of the same program.
    pub fn try_clone(&self) -> Result<Self> {
        duplicate(self.0.as_fd()).map(Self)
    }

    /// The descriptor, for a prog array.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// `BPF_PROG_TEST_RUN`. Empty slices are passed as none.
    pub fn test_run(&self, request: &mut RunRequest<'_>) -> Result<RunResult> {
        let mut attributes = ProgTestRun {
            prog_fd: self.0.as_raw_fd(),
            retval: 0,
            data_size_in: length(request.data_in.len())?,
            data_size_out: length(request.data_out.len())?,
            data_in: read_address(request.data_in),
            data_out: write_address(request.data_out),
            repeat: request.repeat,
            duration: 0,
            ctx_size_in: length(request.ctx_in.len())?,
            ctx_size_out: length(request.ctx_out.len())?,
            ctx_in: write_address(request.ctx_in),
            ctx_out: write_address(request.ctx_out),
            flags: request.flags,
            cpu: request.cpu,
            batch_size: 0,
            zero: 0,
        };
        // SAFETY: the addresses are those of slices with their lengths, and 0 for empty ones (a
        // length of 0 would not limit the kernel's writes). The slices that are written are
        // borrowed mutably: the outputs, and `ctx_in`, which programs of type syscall change in
        // place.
        unsafe { bpf(Cmd::ProgTestRun, &mut attributes) }?;
        Ok(RunResult {
            retval: attributes.retval,
            duration_ns: attributes.duration,
            data_len: attributes.data_size_out as usize,
            ctx_len: attributes.ctx_size_out as usize,
        })
    }
}

/// The input of a test run; the fields are those of `BPF_PROG_TEST_RUN`.
#[derive(Debug)]
pub struct RunRequest<'a> {
    pub data_in: &'a [u8],
    pub data_out: &'a mut [u8],
    pub ctx_in: &'a mut [u8],
    pub ctx_out: &'a mut [u8],
    pub repeat: u32,
    pub flags: u32,
    pub cpu: u32,
}

/// The result of a test run.
#[derive(Debug, Clone, Copy)]
pub struct RunResult {
    pub retval: u32,
    /// Mean time of a run in nanoseconds.
    pub duration_ns: u32,
    /// Bytes of `data_out` that were written.
    pub data_len: usize,
    /// Bytes of `ctx_out` that were written.
    pub ctx_len: usize,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct ProgTestRun {
    prog_fd: i32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    zero: u32,
}
