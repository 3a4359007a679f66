//! The user-space view of a map: typed keys and values, copied in and out.

use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::error::{Error, Result, list};
use super::vm::Vm;
use crate::btf::Btf;
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;
use crate::vm::maps::{Kind, Map};
use crate::vm::{Machine, MapHandle, ProgramHandle};

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// A map of a [`Vm`] as user space accesses it: operations like `bpf_map_lookup_elem(3)`.
///
/// Keys and values are any types with zerocopy's `IntoBytes` and `FromBytes`: numbers,
/// arrays of them, and your own `#[repr(C)]` structs that derive these.
#[derive(Debug, Clone)]
pub struct MapView<'a> {
    pub(super) machine: &'a Machine,
    types: &'a [Option<Btf>],
    handle: MapHandle,
    pub(super) map: Arc<dyn Map>,
}

impl Vm {
    /// Returns the map of this C name.
    ///
    /// # Errors
    /// [`Error::NoMap`] with the existing names.
    pub fn map(&self, name: &str) -> Result<MapView<'_>> {
        // If several have the name: the map of the object loaded last.
        let found = self
            .machine
            .maps()
            .filter(|(_, map)| map.def().name == name)
            .last();
        match found {
            Some((handle, map)) => Ok(self.view(handle, map)),
            None => Err(Error::NoMap {
                name: name.to_owned(),
                there: list(self.machine.maps().map(|(_, map)| map.def().name.as_str())),
            }),
        }
    }

    /// All maps, in the order of their objects.
    pub fn maps(&self) -> impl Iterator<Item = MapView<'_>> {
        self.machine
            .maps()
            .map(|(handle, map)| self.view(handle, map))
    }

    fn view(&self, handle: MapHandle, map: &Arc<dyn Map>) -> MapView<'_> {
        MapView {
            machine: &self.machine,
            types: &self.map_types,
            handle,
            map: map.clone(),
        }
    }
}

impl<'a> MapView<'a> {
    /// The map itself, with all user-space operations: batches, flags, errnos.
    #[doc(hidden)]
    #[must_use]
    pub fn raw(&self) -> &dyn Map {
        &*self.map
    }

    /// The BTF of the map's object.
    #[must_use]
    pub fn btf(&self) -> Option<&'a Btf> {
        self.types.get(self.handle.index())?.as_ref()
    }

    /// The map's definition.
    #[must_use]
    pub fn def(&self) -> &MapDef {
        self.map.def()
    }

    /// The map's handle in the machine.
    #[must_use]
    pub const fn handle(&self) -> MapHandle {
        self.handle
    }

    /// The value under a key; `None` if the key is not in the map.
    ///
    /// # Errors
    /// [`Error::Size`] where `K` or `V` does not have the map's size (for per-CPU maps use
    /// [`get_per_cpu`](Self::get_per_cpu)); [`Error::MapOperation`] where the map's kind
    /// can't be read.
    pub fn get<K, V>(&self, key: &K) -> Result<Option<V>>
    where
        K: IntoBytes + Immutable + ?Sized,
        V: FromBytes,
    {
        match self.get_bytes(key.as_bytes())? {
            Some(bytes) => self.decode(&bytes).map(Some),
            None => self.none(),
        }
    }

    /// The values of all CPUs under a key, CPU 0 first.
    ///
    /// # Errors
    /// As of [`get`](Self::get), `V` being one CPU's value.
    pub fn get_per_cpu<K, V>(&self, key: &K) -> Result<Option<Vec<V>>>
    where
        K: IntoBytes + Immutable + ?Sized,
        V: FromBytes,
    {
        // A wrong type is an error even if the value does not exist.
        self.check("value", self.def().value_size as usize, size_of::<V>())?;
        let bytes = self.get_bytes(key.as_bytes())?;
        bytes.map(|bytes| self.decode_per_cpu(&bytes)).transpose()
    }

    /// Splits the bytes of all CPUs into each CPU's value.
    fn decode_per_cpu<V: FromBytes>(&self, bytes: &[u8]) -> Result<Vec<V>> {
        let size = self.def().value_size as usize;
        let values = bytes.chunks_exact(size.next_multiple_of(8).max(8));
        let values = values.map(|value| self.decode(value.get(..size).unwrap_or(value)));
        values.collect()
    }

    /// The value under a key in bytes, as the system call returns it: for per-CPU maps the
    /// values of all CPUs, each rounded up to 8 bytes.
    ///
    /// # Errors
    /// [`Error::Size`] and [`Error::MapOperation`] as of [`get`](Self::get).
    pub fn get_bytes(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_key(key)?;
        match self.map.read(key) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.failed("lookup", errno)),
        }
    }

    /// Sets the value under a key.
    ///
    /// # Errors
    /// [`Error::Size`] as of [`get`](Self::get), [`Error::MapOperation`] with the
    /// kernel's errno, such as `E2BIG` for a full map.
    pub fn set<K, V>(&self, key: &K, value: &V) -> Result<()>
    where
        K: IntoBytes + Immutable + ?Sized,
        V: IntoBytes + Immutable + ?Sized,
    {
        self.set_bytes(key.as_bytes(), value.as_bytes(), UpdateFlags::empty())
    }

    /// Sets the value under a key, in bytes and with flags.
    ///
    /// # Errors
    /// As of [`set`](Self::set).
    pub fn set_bytes(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<()> {
        self.check_key(key)?;
        self.check("value", self.map.user_value_size(), value.len())?;
        let written = self.map.write(key, value, flags);
        written.map_err(|errno| self.failed("update", errno))
    }

    /// Sets the values of all CPUs under a key, CPU 0 first.
    ///
    /// # Errors
    /// As of [`set`](Self::set), `V` being one CPU's value; [`Error::Size`] unless there is
    /// one value for each CPU.
    pub fn set_per_cpu<K, V>(&self, key: &K, values: &[V]) -> Result<()>
    where
        K: IntoBytes + Immutable + ?Sized,
        V: IntoBytes + Immutable,
    {
        let size = self.def().value_size as usize;
        let mut bytes = Vec::new();
        for value in values {
            self.check("value", size, value.as_bytes().len())?;
            bytes.extend_from_slice(value.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        self.set_bytes(key.as_bytes(), &bytes, UpdateFlags::empty())
    }

    /// Removes and returns the value under a key (`BPF_MAP_LOOKUP_AND_DELETE_ELEM`); `None`
    /// if the key is not in the map.
    ///
    /// # Errors
    /// As of [`get`](Self::get); [`Error::MapOperation`] where the map's kind lacks the
    /// operation.
    pub fn take<K, V>(&self, key: &K) -> Result<Option<V>>
    where
        K: IntoBytes + Immutable + ?Sized,
        V: FromBytes,
    {
        self.check_key(key.as_bytes())?;
        self.taken(key.as_bytes())
    }

    /// Adds a value to a queue, a stack or a bloom filter.
    ///
    /// # Errors
    /// As of [`set`](Self::set): `E2BIG` where there is no room.
    pub fn push<V>(&self, value: &V) -> Result<()>
    where
        V: IntoBytes + Immutable + ?Sized,
    {
        self.set_bytes(&[], value.as_bytes(), UpdateFlags::empty())
    }

    /// Removes and returns the next value of a queue or a stack; `None` if it is empty.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub fn pop<V: FromBytes>(&self) -> Result<Option<V>> {
        self.check_key(&[])?;
        self.taken(&[])
    }

    /// The next value of a queue or a stack, without removing it; `None` if it is empty.
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn peek<V: FromBytes>(&self) -> Result<Option<V>> {
        self.get::<[u8], V>(&[])
    }

    fn taken<V: FromBytes>(&self, key: &[u8]) -> Result<Option<V>> {
        match self.map.take(key, UpdateFlags::empty()) {
            Ok(value) => self.decode(&value).map(Some),
            Err(Errno::ENOENT) => self.none(),
            Err(errno) => Err(self.failed("lookup and delete", errno)),
        }
    }

    /// Returns `None`, after checking the type of the value.
    fn none<V>(&self) -> Result<Option<V>> {
        self.check("value", self.map.user_value_size(), size_of::<V>())?;
        Ok(None)
    }

    /// Whether a bloom filter may contain a value. Its false positives are other values
    /// than the kernel's: see `vm::maps::Bloom`.
    ///
    /// # Errors
    /// [`Error::MapKind`] where the map is no bloom filter.
    pub fn contains<V>(&self, value: &V) -> Result<bool>
    where
        V: IntoBytes + Immutable + ?Sized,
    {
        let size = self.def().value_size as usize;
        self.check("value", size, value.as_bytes().len())?;
        match self.map.kind() {
            Kind::Bloom(bloom) => Ok(bloom.contains(value.as_bytes())),
            _ => Err(self.wrong_kind("a bloom filter")),
        }
    }

    /// Removes a key; returns whether it was in the map.
    ///
    /// # Errors
    /// [`Error::MapOperation`] where the map's kind has no deletion.
    pub fn delete<K>(&self, key: &K) -> Result<bool>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        self.check_key(key.as_bytes())?;
        match self.map.remove(key.as_bytes()) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(self.failed("deletion", errno)),
        }
    }

    /// All keys and values, in the map's order.
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn entries<K, V>(&self) -> Result<Vec<(K, V)>>
    where
        K: FromBytes,
        V: FromBytes,
    {
        let entries = self.entries_bytes()?;
        if entries.is_empty() {
            self.check("key", self.def().key_size as usize, size_of::<K>())?;
            self.none::<V>()?;
        }
        let entries = entries.into_iter();
        let typed = entries.map(|(key, value)| Ok((self.decode_key(&key)?, self.decode(&value)?)));
        typed.collect()
    }

    /// All keys with each CPU's value, in the map's order.
    ///
    /// # Errors
    /// As of [`get_per_cpu`](Self::get_per_cpu).
    pub fn entries_per_cpu<K, V>(&self) -> Result<Vec<(K, Vec<V>)>>
    where
        K: FromBytes,
        V: FromBytes,
    {
        self.check("key", self.def().key_size as usize, size_of::<K>())?;
        self.check("value", self.def().value_size as usize, size_of::<V>())?;
        let entries = self.entries_bytes()?.into_iter();
        let typed =
            entries.map(|(key, value)| Ok((self.decode_key(&key)?, self.decode_per_cpu(&value)?)));
        typed.collect()
    }

    /// All keys, in the map's order.
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn keys<K: FromBytes>(&self) -> Result<Vec<K>> {
        self.check("key", self.def().key_size as usize, size_of::<K>())?;
        let keys = self.map.keys();
        let keys = keys.map_err(|errno| self.failed("iteration", errno))?;
        let size = self.def().key_size as usize;
        keys.chunks_exact(size.max(1))
            .map(|key| self.decode_key(key))
            .collect()
    }

    fn decode_key<K: FromBytes>(&self, key: &[u8]) -> Result<K> {
        K::read_from_bytes(key).map_err(|_| self.wrong_size("key", key.len(), size_of::<K>()))
    }

    /// All keys and values in bytes, in the map's order.
    ///
    /// # Errors
    /// [`Error::MapOperation`] where the map's kind can't be iterated.
    pub fn entries_bytes(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            match self.map.next_key(last.as_deref()) {
                Ok(key) => {
                    if let Some(value) = self.get_bytes(&key)? {
                        entries.push((key.clone(), value));
                    }
                    last = Some(key);
                }
                Err(Errno::ENOENT) => return Ok(entries),
                Err(errno) => return Err(self.failed("iteration", errno)),
            }
        }
    }

    /// The entries of an array whose values are not all zero, and the number of others; for
    /// another map all entries, and 0. Costs what is used of the array.
    pub(crate) fn nonzero_entries_bytes(&self) -> Result<(Vec<Entry>, usize)> {
        let is_array = matches!(self.def().map_type, MapType::Array | MapType::PercpuArray);
        let Some(slab) = self.map.slab().filter(|_| is_array) else {
            return Ok((self.entries_bytes()?, 0));
        };
        let max = self.def().max_entries as usize;
        // The elements of the second CPU follow those of the first.
        let mut indices: Vec<_> = slab.nonzero().iter().map(|at| at % max.max(1)).collect();
        indices.sort_unstable();
        indices.dedup();
        let mut entries = Vec::with_capacity(indices.len());
        for index in indices {
            let key = u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes();
            let value = self.get_bytes(&key)?;
            // Special fields read as zeros.
            let value = value.filter(|value| value.iter().any(|byte| *byte != 0));
            entries.extend(value.map(|value| (key.to_vec(), value)));
        }
        let zeros = max.saturating_sub(entries.len());
        Ok((entries, zeros))
    }

    /// Removes and returns the records of a ring buffer, oldest first.
    ///
    /// # Errors
    /// [`Error::MapKind`] where the map is no ring buffer.
    pub fn take_records(&self) -> Result<Vec<Vec<u8>>> {
        match self.map.kind() {
            Kind::RingBuf(ring) => Ok(ring.take()),
            _ => Err(self.wrong_kind("a ring buffer")),
        }
    }

    /// Puts a map into a map of maps, replacing the previous one.
    ///
    /// # Errors
    /// [`Error::MapKind`] where the map is no map of maps, [`Error::MapOperation`] with the
    /// kernel's errno where the inner map has another shape.
    pub fn set_inner<K>(&self, key: &K, inner: MapHandle) -> Result<()>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        self.check_key(key.as_bytes())?;
        if !matches!(self.map.kind(), Kind::MapOfMaps(_)) {
            return Err(self.wrong_kind("a map of maps"));
        }
        let flags = UpdateFlags::empty();
        let set = self
            .machine
            .set_inner(self.handle, key.as_bytes(), inner, flags);
        set.map_err(|errno| self.failed("update", errno))
    }

    /// The map under a key of a map of maps; `None` if the key has none.
    ///
    /// # Errors
    /// [`Error::MapKind`] where the map is no map of maps, [`Error::Size`] where `K` does
    /// not have the key's size.
    pub fn inner<K>(&self, key: &K) -> Result<Option<MapView<'a>>>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        self.check_key(key.as_bytes())?;
        let Kind::MapOfMaps(outer) = self.map.kind() else {
            return Err(self.wrong_kind("a map of maps"));
        };
        let inner = outer.get(key.as_bytes());
        Ok(inner.and_then(|handle| {
            Some(MapView {
                machine: self.machine,
                types: self.types,
                handle,
                map: self.machine.map(handle)?.clone(),
            })
        }))
    }

    /// Puts a program into a prog array.
    ///
    /// # Errors
    /// [`Error::MapKind`] where the map is no prog array, [`Error::MapOperation`] with
    /// `E2BIG` past its end.
    pub fn set_program(&self, index: u32, program: ProgramHandle) -> Result<()> {
        match self.map.kind() {
            Kind::ProgArray(array) => {
                let set = array.set(index, program);
                set.map_err(|errno| self.failed("update", errno))
            }
            _ => Err(self.wrong_kind("a prog array")),
        }
    }

    pub(super) fn decode<V: FromBytes>(&self, bytes: &[u8]) -> Result<V> {
        V::read_from_bytes(bytes).map_err(|_| self.wrong_size("value", bytes.len(), size_of::<V>()))
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check("key", self.def().key_size as usize, key.len())
    }

    pub(super) fn check(&self, what: &'static str, wanted: usize, given: usize) -> Result<()> {
        if wanted == given {
            Ok(())
        } else {
            Err(self.wrong_size(what, wanted, given))
        }
    }

    fn wrong_size(&self, what: &'static str, wanted: usize, given: usize) -> Error {
        Error::Size {
            map: self.def().name.clone(),
            what,
            wanted,
            given,
        }
    }

    pub(super) fn wrong_kind(&self, wanted: &'static str) -> Error {
        Error::MapKind {
            map: self.def().name.clone(),
            found: self.def().map_type.name().to_owned(),
            wanted,
        }
    }

    pub(super) fn failed(&self, what: &'static str, errno: Errno) -> Error {
        Error::MapOperation {
            map: self.def().name.clone(),
            what,
            errno,
        }
    }
}
