//! Maps: creation, element operations, batches, mapped memory.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, bpf, duplicate, number, open, read_address, write_address};
use super::btf::BtfFd;
use super::mapping::{Mapping, page_size};
use super::token::TokenFd;
use crate::kernel::cpus;
use crate::spec::limits::OBJECT_NAME_LEN;
use crate::spec::{MapFlags, MapType};
use crate::util::Errno;

/// Size of a name in bytes, including the NUL.
pub const NAME_LEN: usize = OBJECT_NAME_LEN;

/// A map in the kernel.
#[derive(Debug)]
pub struct MapFd {
    fd: OwnedFd,
    key_size: usize,
    /// Bytes that a lookup writes and an update reads; all CPUs' values for per-CPU maps.
    value_size: usize,
    max_entries: u32,
    /// An arena's memory.
    arena: Option<Mapping>,
    /// Whether this ring buffer has a reader.
    read: Arc<AtomicBool>,
}

/// A map's definition; the fields are those of `BPF_MAP_CREATE`.
#[derive(Debug, Clone, Copy)]
pub struct MapRequest<'a> {
    pub map_type: MapType,
    pub key_size: u32,
    pub value_size: u32,
    pub max_entries: u32,
    pub flags: u32,
    pub extra: u64,
    pub numa_node: u32,
    pub name: [u8; NAME_LEN],
    pub inner: Option<&'a MapFd>,
    /// The BTF, and the type ids of key and value.
    pub types: Option<(&'a BtfFd, u32, u32)>,
    /// The type id of a `struct_ops` value in the kernel's BTF.
    pub kernel_value_type: u32,
    pub token: Option<&'a TokenFd>,
}

#[repr(C)]
#[derive(Default, FromBytes, IntoBytes)]
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
    value_type_btf_obj_fd: i32,
    map_token_fd: i32,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct Element {
    map_fd: i32,
    zero: u32,
    key: u64,
    /// Address of the value or of the next key.
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
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

/// The result of a batch lookup; `ENOENT` marks the end of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelBatch {
    /// The keys, one after the other.
    pub keys: Vec<u8>,
    /// The values of these keys.
    pub values: Vec<u8>,
    /// Where the next batch starts.
    pub next: Vec<u8>,
    /// The command's result.
    pub result: Result<()>,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct MapFreeze {
    map_fd: i32,
}

impl MapFd {
    /// `BPF_MAP_CREATE`.
    pub fn create(request: &MapRequest<'_>) -> Result<Self> {
        let (btf, key, value) = match request.types {
            Some((btf, key, value)) => (Some(btf.as_fd()), key, value),
            None => (None, 0, 0),
        };
        let mut attributes = MapCreate {
            map_type: request.map_type.number(),
            key_size: request.key_size,
            value_size: request.value_size,
            max_entries: request.max_entries,
            map_flags: request.flags | request.token.map_or(0, |_| MapFlags::TOKEN_FD.bits()),
            inner_map_fd: number(request.inner.map(|inner| inner.fd.as_fd())),
            numa_node: request.numa_node,
            map_name: request.name,
            map_ifindex: 0,
            btf_fd: number(btf),
            btf_key_type_id: key,
            btf_value_type_id: value,
            btf_vmlinux_value_type_id: request.kernel_value_type,
            map_extra: request.extra,
            value_type_btf_obj_fd: 0,
            map_token_fd: number(request.token.map(TokenFd::as_fd)),
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
            read: Arc::default(),
        })
    }

    /// Size in bytes of a value as user space sees it: all CPUs' values for a per-CPU map.
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// The map's file descriptor.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes to the start of an arena.
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

    /// `EINVAL` unless key and value have the map's sizes. A value size of 0 means that the
    /// number of CPUs is unknown: the kernel would write more than the buffer holds.
    fn check(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let fits = key.len() == self.key_size
            && self.value_size > 0
            && value.is_none_or(|value| value.len() == self.value_size);
        fits.then_some(()).ok_or(Errno::EINVAL)
    }

    /// `BPF_MAP_UPDATE_ELEM`. For maps without keys `key` is empty.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> Result<()> {
        self.check(key, Some(value))?;
        let mut attributes = self.element(read_address(key), read_address(value), flags);
        // SAFETY: key and value have the map's sizes; the kernel only reads them.
        unsafe { bpf(Cmd::MapUpdateElem, &mut attributes) }.map(drop)
    }

    /// `BPF_MAP_UPDATE_ELEM` of a map of maps or programs.
    pub fn update_fd(&self, key: &[u8], fd: BorrowedFd<'_>, flags: u64) -> Result<()> {
        self.update(key, &fd.as_raw_fd().to_ne_bytes(), flags)
    }

    /// `BPF_MAP_LOOKUP_ELEM`: the value of a key; for a bloom filter, which has no keys,
    /// whether it may contain `value`.
    pub fn lookup_into(&self, key: &[u8], value: &mut [u8], flags: u64) -> Result<()> {
        self.check(key, Some(value))?;
        let mut attributes = self.element(read_address(key), write_address(value), flags);
        // SAFETY: the key, which is read, and the value, which is written, have the map's
        // sizes; the value has room for every CPU.
        unsafe { bpf(Cmd::MapLookupElem, &mut attributes) }.map(drop)
    }

    /// `BPF_MAP_LOOKUP_ELEM` into a new value.
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
        // SAFETY: as in `lookup_into`.
        unsafe { bpf(Cmd::MapLookupAndDeleteElem, &mut attributes) }?;
        Ok(value)
    }

    /// `BPF_MAP_DELETE_ELEM`.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        let mut attributes = self.element(read_address(key), 0, 0);
        // SAFETY: the key, which is read, has the map's size.
        unsafe { bpf(Cmd::MapDeleteElem, &mut attributes) }.map(drop)
    }

    /// `BPF_MAP_LOOKUP_BATCH`, or `BPF_MAP_LOOKUP_AND_DELETE_BATCH`: at most `count` elements,
    /// from `from` or from the start.
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
            // SAFETY: there is room for `count` keys and values of the map's sizes. Both tokens
            // have the size of a key, or 4 bytes if that is more, which suffices for either
            // kind of map. Nothing else refers to the memory that is written.
            read.result = unsafe { bpf(command, &mut attributes) }.map(drop);
        }
        // A command that failed early does not update the count.
        let told = match read.result {
            Ok(()) | Err(Errno::ENOENT | Errno::ENOSPC) => attributes.count as usize,
            Err(_) => 0,
        };
        read.keys.truncate(self.key_size * told);
        read.values.truncate(self.value_size * told);
        read
    }

    /// `BPF_MAP_UPDATE_BATCH`, or, without values, `BPF_MAP_DELETE_BATCH`. Returns the result
    /// and the number of elements processed.
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
        // SAFETY: the buffers hold `count` keys and values of the map's sizes; the kernel only
        // reads them.
        let result = unsafe { bpf(command, &mut attributes) }.map(drop);
        (result, attributes.count as usize)
    }

    /// `BPF_MAP_GET_NEXT_KEY`: the key after this one, or the first.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>> {
        if key.is_some_and(|key| key.len() != self.key_size) {
            return Err(Errno::EINVAL);
        }
        let mut next = vec![0; self.key_size];
        let key = key.map_or(0, read_address);
        let mut attributes = self.element(key, write_address(&mut next), 0);
        // SAFETY: both keys have the map's size; the second one is written.
        unsafe { bpf(Cmd::MapGetNextKey, &mut attributes) }?;
        Ok(next)
    }

    /// A duplicate descriptor of the same map, which may outlive this one.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            fd: duplicate(self.fd.as_fd())?,
            key_size: self.key_size,
            value_size: self.value_size,
            max_entries: self.max_entries,
            arena: None,
            read: self.read.clone(),
        })
    }

    /// The map's capacity in elements; bytes of data for a ring buffer.
    pub const fn max_entries(&self) -> u32 {
        self.max_entries
    }

    /// Size of a key in bytes.
    pub const fn key_size(&self) -> usize {
        self.key_size
    }

    /// Whether this ring buffer has a reader; shared by all clones.
    pub const fn is_read(&self) -> &Arc<AtomicBool> {
        &self.read
    }

    /// The memory of a ring buffer: the consumer's page, which is writable, and the producer's
    /// page followed by the data, mapped twice.
    pub fn map_ring(&self) -> Result<[Mapping; 2]> {
        let page = page_size();
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let consumer = Mapping::new(&self.fd, 0, page, both, 0)?;
        let size = page + 2 * self.max_entries as usize;
        let behind = libc::off_t::try_from(page).map_err(|_| Errno::EINVAL)?;
        let producer = Mapping::new(&self.fd, 0, size, libc::PROT_READ, behind)?;
        Ok([consumer, producer])
    }

    /// `BPF_MAP_FREEZE`: user space can't write to the map any more.
    pub fn freeze(&self) -> Result<()> {
        let mut attributes = MapFreeze {
            map_fd: self.fd.as_raw_fd(),
        };
        // SAFETY: no addresses.
        unsafe { bpf(Cmd::MapFreeze, &mut attributes) }.map(drop)
    }
}
