//! Map operations whose keys or values are objects. User space identifies these by file
//! descriptors; here it is by address or handle.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::error::Result;
use super::map::MapView;
use crate::spec::UpdateFlags;
use crate::vm::ProgramHandle;
use crate::vm::attach::Counter;
use crate::vm::maps::{Arena, Kind, LocalStorage};

const ANY: UpdateFlags = UpdateFlags::empty();

/// Local storage of tasks, inodes, sockets and cgroups. An owner is the object's address,
/// as in programs.
impl MapView<'_> {
    fn storage(&self) -> Result<&LocalStorage> {
        match self.map.kind() {
            Kind::Storage(storage) => Ok(storage),
            _ => Err(self.wrong_kind("storage of a task, inode, socket or cgroup")),
        }
    }

    /// Whether an owner is a freed kernel object.
    fn is_freed(&self, owner: u64) -> bool {
        self.machine.space.is_freed(owner)
    }

    /// The storage value of an object; `None` if it has none, or was freed.
    ///
    /// # Errors
    /// [`Error::Size`](super::Error::Size) where `V` does not have the map's size,
    /// [`Error::MapKind`](super::Error::MapKind) where the map is no local storage.
    pub fn get_for<V: FromBytes>(&self, owner: impl Into<u64>) -> Result<Option<V>> {
        let (storage, owner) = (self.storage()?, owner.into());
        let value = storage.get(owner).filter(|_| !self.is_freed(owner));
        value.map(|value| self.decode(&value)).transpose()
    }

    /// Sets the storage value of an object.
    ///
    /// # Errors
    /// As of [`get_for`](Self::get_for); [`Error::MapOperation`](super::Error::MapOperation)
    /// with the kernel's errno.
    pub fn set_for<V>(&self, owner: impl Into<u64>, value: &V) -> Result<()>
    where
        V: IntoBytes + Immutable + ?Sized,
    {
        let storage = self.storage()?;
        let bytes = value.as_bytes();
        self.check("value", self.def().value_size as usize, bytes.len())?;
        let set = storage.set(owner.into(), bytes, ANY);
        set.map_err(|errno| self.failed("update", errno))
    }

    /// Removes the storage value of an object; returns whether there was one.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) where the map is no local storage.
    pub fn delete_for(&self, owner: impl Into<u64>) -> Result<bool> {
        let owner = owner.into();
        let was_there = !self.is_freed(owner);
        Ok(self.storage()?.remove(owner).is_ok() && was_there)
    }

    /// The objects with a storage value, in the order of creation.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) where the map is no local storage.
    pub fn owners(&self) -> Result<Vec<u64>> {
        let mut owners = self.storage()?.owners();
        owners.retain(|owner| !self.is_freed(*owner));
        Ok(owners)
    }

    /// Creates a zeroed value under a key of a cgroup storage, as attaching a program to
    /// the cgroup does; after that it can be [set](Self::set).
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) where the map is no cgroup storage,
    /// [`Error::Size`](super::Error::Size) for a key of another size.
    pub fn create<K>(&self, key: &K) -> Result<()>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        self.check_key(key.as_bytes())?;
        match self.map.kind() {
            Kind::CgroupStorage(storage) => storage
                .create(key.as_bytes())
                .map_err(|errno| self.failed("creation", errno)),
            _ => Err(self.wrong_kind("a cgroup storage")),
        }
    }
}

/// Maps of sockets, cgroups, devices, CPUs and perf events.
impl MapView<'_> {
    /// Stores a socket or a cgroup, by its address, under a key of a sockmap, sockhash, XSK
    /// map, reuseport array or cgroup array. A cgroup array also takes a cgroup id.
    /// [`Vm::socket_address`](super::Vm::socket_address) returns the address of a socket of the
    /// mocked network.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps,
    /// [`Error::MapOperation`](super::Error::MapOperation) with the kernel's errno.
    pub fn set_object<K>(&self, key: &K, object: impl Into<u64>) -> Result<()>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        let (key, object) = (key.as_bytes(), object.into());
        self.check_key(key)?;
        let set = match self.map.kind() {
            Kind::Sockets(sockets) => sockets.set(key, object, ANY),
            Kind::Cgroups(cgroups) => cgroups.set(key, object, ANY),
            _ => return Err(self.wrong_kind("a map of sockets or cgroups")),
        };
        set.map_err(|errno| self.failed("update", errno))
    }

    /// The address of the socket under a key; `None` if the key has none.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) where the map holds no sockets.
    pub fn object<K>(&self, key: &K) -> Result<Option<u64>>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        self.check_key(key.as_bytes())?;
        match self.map.kind() {
            Kind::Sockets(sockets) => Ok(sockets.get(key.as_bytes())),
            _ => Err(self.wrong_kind("a map of sockets")),
        }
    }

    /// Puts a device into a devmap, with the program that runs on its packets. Without a
    /// program, [`set`](Self::set) does the same.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps,
    /// [`Error::MapOperation`](super::Error::MapOperation) with the kernel's errno.
    pub fn set_device(&self, key: u32, device: u32, program: Option<ProgramHandle>) -> Result<()> {
        match self.map.kind() {
            Kind::Devices(devices) => {
                let set = devices.set(&key.to_le_bytes(), device, program, ANY);
                set.map_err(|errno| self.failed("update", errno))
            }
            _ => Err(self.wrong_kind("a devmap")),
        }
    }

    /// Gives a CPU of a cpumap a queue of this length, and the program that runs on its
    /// packets. Without a program, [`set`](Self::set) does the same.
    ///
    /// # Errors
    /// As of [`set_device`](Self::set_device).
    pub fn set_queue(&self, cpu: u32, length: u32, program: Option<ProgramHandle>) -> Result<()> {
        match self.map.kind() {
            Kind::Cpus(cpus) => {
                let set = cpus.set(cpu, length, program, ANY);
                set.map_err(|errno| self.failed("update", errno))
            }
            _ => Err(self.wrong_kind("a cpumap")),
        }
    }

    /// Puts a CPU's perf counter into a slot of a `BPF_MAP_TYPE_PERF_EVENT_ARRAY`, for
    /// `bpf_perf_event_read` and `bpf_perf_event_read_value`.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps,
    /// [`Error::MapOperation`](super::Error::MapOperation) for a slot or a CPU that does not
    /// exist.
    pub fn set_counter(&self, slot: u32, cpu: u32, counter: impl Into<Counter>) -> Result<()> {
        match self.map.kind() {
            Kind::PerfEventArray(events) => {
                let set = events.set_counter(slot, cpu, Some(counter.into()));
                set.map_err(|errno| self.failed("setting a perf counter", errno))
            }
            _ => Err(self.wrong_kind("a perf event array")),
        }
    }
}

/// Memory that user space shares with programs.
impl MapView<'_> {
    /// Puts a sample into a user ring buffer, for a program to drain.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps,
    /// [`Error::MapOperation`](super::Error::MapOperation) with `ENOSPC` where it is full
    /// and `E2BIG` where it never has so much room.
    pub fn produce(&self, sample: &[u8]) -> Result<()> {
        match self.map.kind() {
            Kind::UserRingBuf(ring) => {
                let produced = ring.produce(sample);
                produced.map_err(|errno| self.failed("production", errno))
            }
            _ => Err(self.wrong_kind("a user ring buffer")),
        }
    }

    fn arena(&self) -> Result<&Arena> {
        match self.map.kind() {
            Kind::Arena(arena) => Ok(arena),
            _ => Err(self.wrong_kind("an arena")),
        }
    }

    /// The user-space address of an arena's first byte, where an object's global variables
    /// of the arena begin.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps.
    pub fn arena_start(&self) -> Result<u64> {
        Ok(self.arena()?.user_start())
    }

    /// Reads a value at an address of an arena: a user-space address, or its lower 32 bits,
    /// which all pointers to the same byte share. Missing pages are allocated, as by user
    /// space's page fault.
    ///
    /// # Errors
    /// [`Error::MapKind`](super::Error::MapKind) for other maps,
    /// [`Error::MapOperation`](super::Error::MapOperation) with `EFAULT` outside of the
    /// arena, and in one with `BPF_F_SEGV_ON_FAULT` on pages that are not there.
    pub fn read_at<V: FromBytes>(&self, address: u64) -> Result<V> {
        let bytes = self.arena()?.read_memory(address, size_of::<V>());
        let bytes = bytes.map_err(|errno| self.failed("read of memory", errno))?;
        self.decode(&bytes)
    }

    /// Writes to an address of an arena; the counterpart of [`read_at`](Self::read_at).
    ///
    /// # Errors
    /// As of [`read_at`](Self::read_at).
    pub fn write_at<V>(&self, address: u64, value: &V) -> Result<()>
    where
        V: IntoBytes + Immutable + ?Sized,
    {
        let written = self.arena()?.write_memory(address, value.as_bytes());
        written.map_err(|errno| self.failed("write to memory", errno))
    }
}
