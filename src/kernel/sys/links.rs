//! Attaches programs by `bpf(2)`: raw tracepoints and links. Closing a link detaches.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, length, open, read_address, text_address};
use super::perf::PerfFd;
use super::programs::ProgFd;
use crate::spec::AttachType;
use crate::util::Errno;

/// The link of an attached program.
#[derive(Debug)]
pub struct LinkFd {
    /// Closing it detaches.
    fd: OwnedFd,
}

impl From<OwnedFd> for LinkFd {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct RawTracepointOpen {
    name: u64,
    prog_fd: i32,
    zero: u32,
    cookie: u64,
}

/// The fields that all links begin with.
#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct Start {
    prog_fd: i32,
    target_fd: i32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct PerfLink {
    start: Start,
    cookie: u64,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct TracingLink {
    start: Start,
    target_btf_id: u32,
    zero: u32,
    cookie: u64,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct KernelProbesLink {
    start: Start,
    flags: u32,
    count: u32,
    symbols: u64,
    addresses: u64,
    cookies: u64,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct UserProbesLink {
    start: Start,
    path: u64,
    offsets: u64,
    ref_ctr_offsets: u64,
    cookies: u64,
    count: u32,
    flags: u32,
    pid: u32,
    zero: u32,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct IterCreate {
    link_fd: u32,
    flags: u32,
}

/// Parameters of a link to a BTF target.
#[derive(Debug, Clone, Copy)]
pub struct BtfLink {
    /// The program's expected attach type.
    pub attach_type: AttachType,
    /// The cookie.
    pub cookie: u64,
}

/// The kernel functions of a multi-kprobe link.
#[derive(Debug, Clone, Copy)]
pub struct KernelProbes<'a> {
    /// The program's expected attach type.
    pub attach_type: AttachType,
    /// The functions' names.
    pub symbols: &'a [&'a CStr],
    /// A cookie for each function, or empty.
    pub cookies: &'a [u64],
    /// Whether the program runs at the functions' return.
    pub returns: bool,
}

/// The locations in a file of a multi-uprobe link.
#[derive(Debug, Clone, Copy)]
pub struct UserProbes<'a> {
    /// The program's expected attach type.
    pub attach_type: AttachType,
    /// The file.
    pub path: &'a CStr,
    /// File offsets.
    pub offsets: &'a [u64],
    /// File offset of a semaphore for each location, 0 for none; or empty.
    pub semaphores: &'a [u64],
    /// A cookie for each location, or empty.
    pub cookies: &'a [u64],
    /// Whether the program runs at the functions' return.
    pub returns: bool,
    /// The process to trace; `None` for all.
    pub pid: Option<u32>,
}

/// `BPF_F_KPROBE_MULTI_RETURN` and `BPF_F_UPROBE_MULTI_RETURN`.
const RETURNS: u32 = 1;

impl LinkFd {
    /// `BPF_RAW_TRACEPOINT_OPEN`; without a name for programs loaded for a BTF target.
    pub fn raw_tracepoint(program: &ProgFd, name: Option<&CStr>, cookie: u64) -> Result<Self> {
        let mut attributes = RawTracepointOpen {
            name: text_address(name),
            prog_fd: program.as_fd().as_raw_fd(),
            zero: 0,
            cookie,
        };
        // SAFETY: the name is NUL-terminated, and the descriptor is borrowed.
        unsafe { open(Cmd::RawTracepointOpen, &mut attributes) }.map(Self::from)
    }

    /// `BPF_LINK_CREATE` of a perf event.
    pub fn perf_event(program: &ProgFd, event: &PerfFd, cookie: u64) -> Result<Self> {
        let mut attributes = PerfLink {
            start: start(program, Some(event.as_fd()), AttachType::PerfEvent),
            cookie,
        };
        // SAFETY: no addresses, and the descriptors are borrowed.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }

    /// `BPF_LINK_CREATE` of a program loaded for a BTF target.
    pub fn tracing(program: &ProgFd, link: BtfLink) -> Result<Self> {
        let mut attributes = TracingLink {
            start: start(program, None, link.attach_type),
            target_btf_id: 0,
            zero: 0,
            cookie: link.cookie,
        };
        // SAFETY: no addresses, and the descriptor is borrowed.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }

    /// `BPF_LINK_CREATE` of a program for the packets of the device with this index.
    pub fn to_device(program: &ProgFd, index: i32, attach_type: AttachType) -> Result<Self> {
        let mut attributes = start(program, None, attach_type);
        attributes.target_fd = index;
        // SAFETY: no addresses, and the descriptor is borrowed.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }

    /// `BPF_LINK_CREATE` of a program for a cgroup's folder.
    pub fn to_folder(
        program: &ProgFd,
        folder: &std::fs::File,
        attach_type: AttachType,
    ) -> Result<Self> {
        let mut attributes = start(program, Some(folder.as_fd()), attach_type);
        // SAFETY: no addresses, and the descriptors are borrowed.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }

    /// `BPF_ITER_CREATE`: a file that runs the linked iterator while it is read.
    pub fn iterate(&self) -> Result<std::fs::File> {
        let mut attributes = IterCreate {
            link_fd: self.fd.as_raw_fd().cast_unsigned(),
            flags: 0,
        };
        // SAFETY: no addresses, and the descriptor is borrowed.
        let file: OwnedFd = unsafe { open(Cmd::IterCreate, &mut attributes) }?;
        Ok(file.into())
    }

    /// `BPF_LINK_CREATE` of a multi-kprobe.
    pub fn kernel_probes(program: &ProgFd, probes: &KernelProbes<'_>) -> Result<Self> {
        let addresses: Vec<u8> = probes
            .symbols
            .iter()
            .flat_map(|name| text_address(Some(name)).to_ne_bytes())
            .collect();
        let cookies = words(probes.cookies, probes.symbols.len())?;
        let mut attributes = KernelProbesLink {
            start: start(program, None, probes.attach_type),
            flags: u32::from(probes.returns) * RETURNS,
            count: length(probes.symbols.len())?,
            symbols: read_address(&addresses),
            addresses: 0,
            cookies: read_address(&cookies),
        };
        // SAFETY: `count` addresses of NUL-terminated texts, and as many cookies or none; the
        // kernel only reads them.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }

    /// `BPF_LINK_CREATE` of a multi-uprobe.
    pub fn user_probes(program: &ProgFd, probes: &UserProbes<'_>) -> Result<Self> {
        let offsets = words(probes.offsets, probes.offsets.len())?;
        let cookies = words(probes.cookies, probes.offsets.len())?;
        let semaphores = words(probes.semaphores, probes.offsets.len())?;
        let mut attributes = UserProbesLink {
            start: start(program, None, probes.attach_type),
            path: text_address(Some(probes.path)),
            offsets: read_address(&offsets),
            ref_ctr_offsets: read_address(&semaphores),
            cookies: read_address(&cookies),
            count: length(probes.offsets.len())?,
            flags: u32::from(probes.returns) * RETURNS,
            pid: probes.pid.unwrap_or(0),
            zero: 0,
        };
        // SAFETY: `count` offsets, as many semaphores and cookies or none, and a NUL-terminated
        // path; the kernel only reads them.
        unsafe { open(Cmd::LinkCreate, &mut attributes) }.map(Self::from)
    }
}

fn start(program: &ProgFd, target: Option<BorrowedFd<'_>>, attach_type: AttachType) -> Start {
    Start {
        prog_fd: program.as_fd().as_raw_fd(),
        target_fd: target.map_or(0, |fd| fd.as_raw_fd()),
        attach_type: attach_type.number(),
        flags: 0,
    }
}

/// Numbers as bytes; `EINVAL` unless there are none or `count`.
fn words(numbers: &[u64], count: usize) -> Result<Vec<u8>> {
    if !numbers.is_empty() && numbers.len() != count {
        return Err(Errno::EINVAL);
    }
    Ok(numbers.iter().flat_map(|word| word.to_ne_bytes()).collect())
}
