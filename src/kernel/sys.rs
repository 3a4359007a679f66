//! `bpf(2)`: the one file with system calls (beside it only the mapping of arenas). Each function here is safe: it builds
//! the command's attributes from slices and from file descriptors that are open as
//! long as their owners live.
//!
//! The attribute structures are those of `union bpf_attr`
//! (`include/uapi/linux/bpf.h`), one for each command, as far as bpflab fills them. The
//! kernel takes shorter and longer ones, if what it doesn't know is zero.

#![allow(unsafe_code, reason = "system calls")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::cpus;
use crate::isa::RawInsn;
use crate::spec::MapType;
use crate::spec::limits::{OBJECT_NAME_LEN, PAGE_SIZE};
use crate::util::Errno;

type Result<T> = std::result::Result<T, Errno>;

/// Bytes of a name, the final zero included.
pub(super) const NAME_LEN: usize = OBJECT_NAME_LEN;

/// A map in the kernel.
#[derive(Debug)]
pub(super) struct MapFd {
    fd: OwnedFd,
    key_size: usize,
    /// Bytes that a lookup writes and an update reads: all CPUs' values.
    value_size: usize,
    max_entries: u32,
    /// An arena's memory.
    arena: Option<Mapping>,
}

/// Memory shared with the kernel, which is unmapped when this is dropped. No reference
/// to it is ever made.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut libc::c_void,
    size: usize,
}

// SAFETY: any thread may write to the memory and unmap it.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference nothing can be done; writing takes a mutable one.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps an arena of so many pages where its definition wants it, or anywhere. The
    /// verifier takes a program with an arena only when it has an address in user space.
    fn of_arena(fd: &OwnedFd, pages: u32, wanted: u64) -> Result<Self> {
        let wanted = usize::try_from(wanted).map_err(|_| Errno::EINVAL)?;
        let size = pages as usize * PAGE_SIZE as usize;
        Self::new(fd, wanted, size, libc::PROT_READ | libc::PROT_WRITE, 0)
    }

    /// Maps `size` bytes of what a descriptor stands for, from `offset` on.
    fn new(
        fd: &OwnedFd,
        wanted: usize,
        size: usize,
        rights: libc::c_int,
        offset: libc::off_t,
    ) -> Result<Self> {
        // SAFETY: without MAP_FIXED the kernel chooses memory that nothing uses.
        let address = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(wanted),
                size,
                rights,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(last_errno());
        }
        Ok(Self { address, size })
    }

    /// The memory's first byte, which is there as long as this value.
    pub const fn start(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Bytes of the memory.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Mapping {
    /// Writes to the memory's beginning.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.size {
            return Err(Errno::E2BIG);
        }
        // SAFETY: the memory is as long as that, writable and ours, so `bytes` is
        // elsewhere; nobody else refers to it, and a program that changes it meanwhile
        // would change bytes only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address.cast(), bytes.len()) };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped for this value, and no reference to it exists.
        unsafe { libc::munmap(self.address, self.size) };
    }
}

/// A verified program in the kernel.
#[derive(Debug)]
pub(super) struct ProgFd(OwnedFd);

/// BTF in the kernel.
#[derive(Debug)]
pub(super) struct BtfFd(OwnedFd);

/// `enum bpf_cmd`.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Cmd {
    MapCreate = 0,
    MapLookupElem = 1,
    MapUpdateElem = 2,
    MapDeleteElem = 3,
    MapGetNextKey = 4,
    ProgLoad = 5,
    ProgTestRun = 10,
    BtfLoad = 18,
    MapLookupAndDeleteElem = 21,
    MapFreeze = 22,
    MapLookupBatch = 24,
    MapLookupAndDeleteBatch = 25,
    MapUpdateBatch = 26,
    MapDeleteBatch = 27,
}

/// The attributes of a command.
///
/// # Safety
/// The type is `repr(C)`, has no padding, and any bytes are a value of it: the kernel
/// reads it byte by byte and may write to it.
unsafe trait Attributes {}

/// Makes the call.
///
/// # Safety
/// Each address in `attributes` is 0, or that of as much memory as the field beside it
/// says (for maps: as the map's sizes say), writable where the command writes, and
/// nothing else refers to what is written. Each descriptor is open.
unsafe fn bpf<A: Attributes>(command: Cmd, attributes: &mut A) -> Result<i32> {
    // SAFETY: the third argument is the size of what the second points to, which is
    // initialised and borrowed for the call alone; what it refers to is the caller's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            std::ptr::from_mut(attributes),
            size_of::<A>(),
        )
    };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(last_errno()),
    }
}

fn last_errno() -> Errno {
    let number = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno(u16::try_from(number).unwrap_or(u16::MAX))
}

/// Makes a call whose result is a new descriptor.
///
/// # Safety
/// As for [`bpf`], and the command is one that opens a descriptor.
unsafe fn open<A: Attributes>(command: Cmd, attributes: &mut A) -> Result<OwnedFd> {
    // SAFETY: as the caller promises.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened this descriptor for us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of bytes that the kernel reads; 0 for none.
fn read_address(bytes: &[u8]) -> u64 {
    if bytes.is_empty() {
        0
    } else {
        bytes.as_ptr().expose_provenance() as u64
    }
}

/// The address of bytes that the kernel writes; 0 for none.
fn write_address(bytes: &mut [u8]) -> u64 {
    if bytes.is_empty() {
        0
    } else {
        bytes.as_mut_ptr().expose_provenance() as u64
    }
}

/// A length in a 32-bit field.
fn length(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| Errno::E2BIG)
}

fn number(fd: Option<BorrowedFd<'_>>) -> i32 {
    fd.map_or(0, |fd| fd.as_raw_fd())
}

/// What a map is made of; the fields are those of `BPF_MAP_CREATE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapRequest<'a> {
    pub map_type: MapType,
    pub key_size: u32,
    pub value_size: u32,
    pub max_entries: u32,
    pub flags: u32,
    pub extra: u64,
    pub numa_node: u32,
    pub name: [u8; NAME_LEN],
    pub inner: Option<&'a MapFd>,
    /// The BTF, and the types of key and value in it.
    pub types: Option<(&'a BtfFd, u32, u32)>,
    /// The type of a `struct_ops` value in the kernel's BTF.
    pub kernel_value_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: i32,
    numa_node: u32,
    map_name: [u8; NAME_LEN],
    map_ifindex: u32,
    btf_fd: i32,
    btf_key_type_id: u32,
    btf_value_type_id: u32,
    btf_vmlinux_value_type_id: u32,
    map_extra: u64,
}

// SAFETY: integers; the 16 fields of 4 bytes before the one of 8 leave no gap.
unsafe impl Attributes for MapCreate {}

#[repr(C)]
struct Element {
    map_fd: i32,
    zero: u32,
    key: u64,
    /// Value or next key.
    value: u64,
    flags: u64,
}

// SAFETY: integers; two of 4 bytes, then some of 8, leave no gap.
unsafe impl Attributes for Element {}

#[repr(C)]
struct Elements {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: i32,
    elem_flags: u64,
    flags: u64,
}

// SAFETY: integers; two of 4 bytes between those of 8 leave no gap.
unsafe impl Attributes for Elements {}

/// What a batch of look-ups gave, and how it ended: `ENOENT` when there is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelBatch {
    /// The keys, one behind the other.
    pub keys: Vec<u8>,
    /// The values of these keys.
    pub values: Vec<u8>,
    /// Where the next batch goes on.
    pub next: Vec<u8>,
    /// What the command said.
    pub result: Result<()>,
}

#[repr(C)]
struct MapFreeze {
    map_fd: i32,
}

// SAFETY: one integer.
unsafe impl Attributes for MapFreeze {}

impl MapFd {
    /// `BPF_MAP_CREATE`.
    pub fn create(request: &MapRequest<'_>) -> Result<Self> {
        let (btf, key, value) = match request.types {
            Some((btf, key, value)) => (Some(btf.0.as_fd()), key, value),
            None => (None, 0, 0),
        };
        let mut attributes = MapCreate {
            map_type: request.map_type.number(),
            key_size: request.key_size,
            value_size: request.value_size,
            max_entries: request.max_entries,
            map_flags: request.flags,
            inner_map_fd: number(request.inner.map(|inner| inner.fd.as_fd())),
            numa_node: request.numa_node,
            map_name: request.name,
            map_ifindex: 0,
            btf_fd: number(btf),
            btf_key_type_id: key,
            btf_value_type_id: value,
            btf_vmlinux_value_type_id: request.kernel_value_type,
            map_extra: request.extra,
        };
        // SAFETY: no addresses, and the descriptors are borrowed.
        let fd = unsafe { open(Cmd::MapCreate, &mut attributes) }?;
        let arena = (request.map_type == MapType::Arena)
            .then(|| Mapping::of_arena(&fd, request.max_entries, request.extra));
        let value_size = request.value_size as usize;
        let value_size = if request.map_type.info().per_cpu {
            value_size.next_multiple_of(8) * cpus::possible() as usize
        } else {
            value_size
        };
        Ok(Self {
            fd,
            key_size: request.key_size as usize,
            value_size,
            max_entries: request.max_entries,
            arena: arena.transpose()?,
        })
    }

    /// Bytes of a value as user space sees it: all CPUs' values of a per-CPU map.
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// Another descriptor of the same map.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes to an arena's beginning.
    pub fn write_arena(&mut self, bytes: &[u8]) -> Result<()> {
        self.arena.as_mut().ok_or(Errno::EINVAL)?.write(bytes)
    }

    fn element(&self, key: u64, value: u64, flags: u64) -> Element {
        Element {
            map_fd: self.fd.as_raw_fd(),
            zero: 0,
            key,
            value,
            flags,
        }
    }

    /// `EINVAL` unless key and value are as long as the map's. Without the number of
    /// CPUs the kernel would write more than is expected.
    fn check(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let fits = key.len() == self.key_size
            && self.value_size > 0
            && value.is_none_or(|value| value.len() == self.value_size);
        fits.then_some(()).ok_or(Errno::EINVAL)
    }

    /// `BPF_MAP_UPDATE_ELEM`. Maps without keys take an empty one.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> Result<()> {
        self.check(key, Some(value))?;
        let mut attributes = self.element(read_address(key), read_address(value), flags);
        // SAFETY: key and value are as long as the map's; the kernel only reads them.
        unsafe { bpf(Cmd::MapUpdateElem, &mut attributes) }.map(drop)
    }

    /// `BPF_MAP_UPDATE_ELEM` of a map that holds maps or programs.
    pub fn update_fd(&self, key: &[u8], fd: BorrowedFd<'_>, flags: u64) -> Result<()> {
        self.update(key, &fd.as_raw_fd().to_ne_bytes(), flags)
    }

    /// `BPF_MAP_LOOKUP_ELEM`: the value under a key; of a bloom filter, which has no
    /// keys, whether it may have `value`.
    pub fn lookup_into(&self, key: &[u8], value: &mut [u8], flags: u64) -> Result<()> {
        self.check(key, Some(value))?;
        let mut attributes = self.element(read_address(key), write_address(value), flags);
        // SAFETY: the key is as long as the map's, which is read; the value, which is
        // written, is as long as the map's, for every CPU.
        unsafe { bpf(Cmd::MapLookupElem, &mut attributes) }.map(drop)
    }

    /// The same, as a new value.
    pub fn lookup(&self, key: &[u8], flags: u64) -> Result<Vec<u8>> {
        let mut value = vec![0; self.value_size];
        self.lookup_into(key, &mut value, flags)?;
        Ok(value)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
    pub fn lookup_and_delete(&self, key: &[u8], flags: u64) -> Result<Vec<u8>> {
        self.check(key, None)?;
        let mut value = vec![0; self.value_size];
        let mut attributes = self.element(read_address(key), write_address(&mut value), flags);
        // SAFETY: as of `lookup_into`.
        unsafe { bpf(Cmd::MapLookupAndDeleteElem, &mut attributes) }?;
        Ok(value)
    }

    /// `BPF_MAP_DELETE_ELEM`.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        let mut attributes = self.element(read_address(key), 0, 0);
        // SAFETY: the key is as long as the map's, which is read.
        unsafe { bpf(Cmd::MapDeleteElem, &mut attributes) }.map(drop)
    }

    /// `BPF_MAP_LOOKUP_BATCH`, or `BPF_MAP_LOOKUP_AND_DELETE_BATCH`: at most `count`
    /// elements from where `from` says, or from the start.
    pub fn read_batch(
        &self,
        from: Option<&[u8]>,
        count: u32,
        elem_flags: u64,
        delete: bool,
    ) -> KernelBatch {
        let token = self.key_size.max(size_of::<u32>());
        let mut read = KernelBatch {
            keys: vec![0; self.key_size * count as usize],
            values: vec![0; self.value_size * count as usize],
            next: vec![0; token],
            result: Ok(()),
        };
        let from = match from {
            Some(from) if from.len() == token => read_address(from),
            Some(_) => {
                read.result = Err(Errno::EINVAL);
                0
            }
            None => 0,
        };
        let mut attributes = Elements {
            in_batch: from,
            out_batch: write_address(&mut read.next),
            keys: write_address(&mut read.keys),
            values: write_address(&mut read.values),
            count,
            map_fd: self.fd.as_raw_fd(),
            elem_flags,
            flags: 0,
        };
        let command = match delete {
            true => Cmd::MapLookupAndDeleteBatch,
            false => Cmd::MapLookupBatch,
        };
        if read.result.is_ok() {
            // SAFETY: `count` keys and values of the map's sizes have room, and both
            // tokens are as long as a key, or a number of 4 bytes if that is longer,
            // which is what either kind of map takes. What is written is ours alone.
            read.result = unsafe { bpf(command, &mut attributes) }.map(drop);
        }
        // A command that failed at once leaves the number as it was given.
        let told = match read.result {
            Ok(()) | Err(Errno::ENOENT | Errno::ENOSPC) => attributes.count as usize,
            Err(_) => 0,
        };
        read.keys.truncate(self.key_size * told);
        read.values.truncate(self.value_size * told);
        read
    }

    /// `BPF_MAP_UPDATE_BATCH`, or, without values, `BPF_MAP_DELETE_BATCH`; beside the
    /// result how many elements were done.
    pub fn write_batch(
        &self,
        keys: &[u8],
        values: Option<&[u8]>,
        elem_flags: u64,
    ) -> (Result<()>, usize) {
        let count = keys.len().checked_div(self.key_size).unwrap_or_default();
        let fits = keys.len() == count * self.key_size
            && values.is_none_or(|values| values.len() == count * self.value_size);
        let Some(number) = u32::try_from(count).ok().filter(|_| fits) else {
            return (Err(Errno::EINVAL), 0);
        };
        let mut attributes = Elements {
            in_batch: 0,
            out_batch: 0,
            keys: read_address(keys),
            values: values.map_or(0, read_address),
            count: number,
            map_fd: self.fd.as_raw_fd(),
            elem_flags,
            flags: 0,
        };
        let command = match values {
            Some(_) => Cmd::MapUpdateBatch,
            None => Cmd::MapDeleteBatch,
        };
        // SAFETY: so many keys and values of the map's sizes are there; the kernel only
        // reads them.
        let result = unsafe { bpf(command, &mut attributes) }.map(drop);
        (result, attributes.count as usize)
    }

    /// `BPF_MAP_GET_NEXT_KEY`: the key after this one, or the first one.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>> {
        if key.is_some_and(|key| key.len() != self.key_size) {
            return Err(Errno::EINVAL);
        }
        let mut next = vec![0; self.key_size];
        let key = key.map_or(0, read_address);
        let mut attributes = self.element(key, write_address(&mut next), 0);
        // SAFETY: both keys are as long as the map's; the second one is written.
        unsafe { bpf(Cmd::MapGetNextKey, &mut attributes) }?;
        Ok(next)
    }

    /// The memory of a ring buffer: the consumer's page, which may be written, and behind
    /// the producer's page the data, twice.
    pub fn map_ring(&self) -> Result<[Mapping; 2]> {
        let page = PAGE_SIZE as usize;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let consumer = Mapping::new(&self.fd, 0, page, both, 0)?;
        let size = page + 2 * self.max_entries as usize;
        let behind = libc::off_t::from(PAGE_SIZE);
        let producer = Mapping::new(&self.fd, 0, size, libc::PROT_READ, behind)?;
        Ok([consumer, producer])
    }

    /// `BPF_MAP_FREEZE`: user space can't write to it any more.
    pub fn freeze(&self) -> Result<()> {
        let mut attributes = MapFreeze {
            map_fd: self.fd.as_raw_fd(),
        };
        // SAFETY: no addresses.
        unsafe { bpf(Cmd::MapFreeze, &mut attributes) }.map(drop)
    }
}

#[repr(C)]
struct BtfLoad {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
    btf_log_level: u32,
    btf_log_true_size: u32,
}

// SAFETY: integers; those of 8 bytes stand first, four of 4 follow.
unsafe impl Attributes for BtfLoad {}

impl BtfFd {
    /// `BPF_BTF_LOAD`, with the kernel's log in `log` unless that is empty.
    pub fn load(btf: &[u8], log: &mut [u8]) -> Result<Self> {
        let mut attributes = BtfLoad {
            btf: read_address(btf),
            btf_log_size: length(log.len())?,
            btf_log_level: u32::from(!log.is_empty()),
            btf_log_buf: write_address(log),
            btf_size: length(btf.len())?,
            btf_log_true_size: 0,
        };
        // SAFETY: both addresses are those of slices with their lengths; the log,
        // which is written, is borrowed mutably.
        unsafe { open(Cmd::BtfLoad, &mut attributes) }.map(Self)
    }
}

/// What a program is made of; the fields are those of `BPF_PROG_LOAD`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgRequest<'a> {
    pub prog_type: u32,
    pub expected_attach_type: u32,
    pub insns: &'a [u8],
    pub license: &'a CStr,
    pub name: [u8; NAME_LEN],
    pub flags: u32,
    pub attach_btf_id: u32,
    /// The program's BTF.
    pub btf: Option<&'a BtfFd>,
    /// Records of 8 bytes.
    pub func_info: &'a [u8],
    /// Records of 16 bytes.
    pub line_info: &'a [u8],
    /// The maps that instructions name by index; a gap is no descriptor.
    pub maps: &'a [Option<BorrowedFd<'a>>],
    pub log_level: u32,
}

/// Bytes of a record of `func_info` and of `line_info`.
const FUNC_INFO: u32 = 8;
const LINE_INFO: u32 = 16;

#[repr(C)]
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
}

// SAFETY: integers; fields of 4 bytes stand in pairs before each of 8.
unsafe impl Attributes for ProgLoad {}

impl ProgFd {
    /// `BPF_PROG_LOAD`; the log is written to `log` and ends with a zero. Beside the
    /// result: how long a log would have been whole, 0 if the kernel doesn't say.
    pub fn load(request: &ProgRequest<'_>, log: &mut [u8]) -> (Result<Self>, usize) {
        let fd_array: Vec<u8> = request
            .maps
            .iter()
            .flat_map(|fd| fd.map_or(-1, |fd| fd.as_raw_fd()).to_ne_bytes())
            .collect();
        let mut attributes = match Self::attributes(request, &fd_array, log) {
            Ok(attributes) => attributes,
            Err(errno) => return (Err(errno), 0),
        };
        // SAFETY: the addresses are those of slices with their lengths (the license
        // ends with its zero), and of the descriptors, which are borrowed. An index
        // behind them makes the kernel read other bytes of ours, or fail with EFAULT:
        // it copies, and checks what it copied. The log, which is written, is
        // borrowed mutably.
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
            prog_flags: request.flags,
            prog_name: request.name,
            prog_ifindex: 0,
            expected_attach_type: request.expected_attach_type,
            prog_btf_fd: number(request.btf.map(|btf| btf.0.as_fd())),
            func_info_rec_size: if func_info_cnt > 0 { FUNC_INFO } else { 0 },
            func_info: read_address(request.func_info),
            func_info_cnt,
            line_info_rec_size: if line_info_cnt > 0 { LINE_INFO } else { 0 },
            line_info: read_address(request.line_info),
            line_info_cnt,
            attach_btf_id: request.attach_btf_id,
            attach_prog_fd: 0,
            core_relo_cnt: 0,
            fd_array: read_address(fd_array),
            core_relos: 0,
            core_relo_rec_size: 0,
            log_true_size: 0,
        })
    }

    /// The descriptor, for a map of programs.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// `BPF_PROG_TEST_RUN`. An empty slice stands for none.
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
        // SAFETY: the addresses are those of slices with their lengths, and 0 for
        // empty ones (a length of 0 would not bound what the kernel writes). Those
        // that are written are borrowed mutably: the outputs, and `ctx_in`, which
        // programs of type syscall change in place.
        unsafe { bpf(Cmd::ProgTestRun, &mut attributes) }?;
        Ok(RunResult {
            retval: attributes.retval,
            duration_ns: attributes.duration,
            data_len: attributes.data_size_out as usize,
            ctx_len: attributes.ctx_size_out as usize,
        })
    }
}

/// What a test run is given; the fields are those of `BPF_PROG_TEST_RUN`.
#[derive(Debug)]
pub(super) struct RunRequest<'a> {
    pub data_in: &'a [u8],
    pub data_out: &'a mut [u8],
    pub ctx_in: &'a mut [u8],
    pub ctx_out: &'a mut [u8],
    pub repeat: u32,
    pub flags: u32,
    pub cpu: u32,
}

/// What a test run gives back.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunResult {
    pub retval: u32,
    /// Mean time of a run.
    pub duration_ns: u32,
    /// Bytes of `data_out` that were written.
    pub data_len: usize,
    /// Bytes of `ctx_out` that were written.
    pub ctx_len: usize,
}

#[repr(C)]
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

// SAFETY: integers; fields of 4 bytes stand in pairs before each of 8 and at the end.
unsafe impl Attributes for ProgTestRun {}
