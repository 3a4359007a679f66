//! The part that all maps share: definition, CPUs and rights.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::btf::FieldKind;
use crate::program::MapDef;
use crate::spec::{MapFlags, UpdateFlags};
use crate::util::Errno;

/// The part that all kinds of maps share.
#[derive(Debug)]
pub struct Base {
    def: MapDef,
    cpus: u32,
    frozen: AtomicBool,
}

/// The mode of an update (`BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Create or replace.
    Any,
    /// Create.
    NoExist,
    /// Replace.
    Exist,
}

impl Mode {
    /// The mode in the flags of an update, for kinds without `BPF_F_LOCK`.
    pub(super) const fn of(flags: UpdateFlags) -> Result<Self, Errno> {
        match flags.bits() {
            0 => Ok(Self::Any),
            1 => Ok(Self::NoExist),
            2 => Ok(Self::Exist),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The mode in the flags of an update, ignoring `BPF_F_LOCK`.
    pub(super) const fn without_lock(flags: UpdateFlags) -> Result<Self, Errno> {
        Self::of(flags.difference(UpdateFlags::LOCK))
    }

    /// Checks whether an update may write an element that exists or not
    /// (`check_flags`, `kernel/bpf/hashtab.c`).
    pub(super) const fn check(self, exists: bool) -> Result<(), Errno> {
        match (self, exists) {
            (Self::NoExist, true) => Err(Errno::EEXIST),
            (Self::Exist, false) => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}

impl Base {
    /// The common part of a map, on a machine with `cpus` CPUs.
    #[must_use]
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            def: def.clone(),
            cpus,
            frozen: AtomicBool::new(false),
        }
    }

    /// The map's definition.
    #[must_use]
    pub const fn def(&self) -> &MapDef {
        &self.def
    }

    /// Number of CPUs of the machine.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.cpus
    }

    /// `EINVAL` if `flags` has `BPF_F_LOCK`, but values have no `bpf_spin_lock`.
    pub(super) fn check_lock(&self, flags: UpdateFlags) -> Result<(), Errno> {
        let refused = flags.contains(UpdateFlags::LOCK)
            && self.def.special.find(FieldKind::SpinLock).is_none();
        (!refused).then_some(()).ok_or(Errno::EINVAL)
    }

    /// `EINVAL` for flags of a look-up other than `BPF_F_LOCK`, or as for
    /// [`check_lock`](Self::check_lock).
    pub(super) fn check_read(&self, flags: UpdateFlags) -> Result<(), Errno> {
        if !UpdateFlags::LOCK.contains(flags) {
            return Err(Errno::EINVAL);
        }
        self.check_lock(flags)
    }

    /// The array index in a key; `EINVAL` if the key does not have four bytes.
    pub(super) fn index(key: &[u8]) -> Result<u32, Errno> {
        key.try_into()
            .map(u32::from_le_bytes)
            .map_err(|_| Errno::EINVAL)
    }

    /// The array index in a key, if it is within the map.
    pub(super) fn index_within(&self, key: &[u8]) -> Result<Option<u32>, Errno> {
        let index = Self::index(key)?;
        Ok((index < self.def.max_entries).then_some(index))
    }

    /// The slot that an update of an array of file descriptors writes
    /// (`bpf_fd_array_map_update_elem`, `kernel/bpf/arraymap.c`). Flags are invalid; `E2BIG` past
    /// the end.
    pub(super) fn slot_for_update(&self, key: &[u8], flags: UpdateFlags) -> Result<u32, Errno> {
        if !flags.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.index_within(key)?.ok_or(Errno::E2BIG)
    }

    /// The index after `key` (`array_map_get_next_key`, `kernel/bpf/arraymap.c`).
    pub(super) fn next_index(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let last = self.def.max_entries.checked_sub(1).ok_or(Errno::ENOENT)?;
        let next = match key.map(Self::index).transpose()? {
            Some(index) if index == last => return Err(Errno::ENOENT),
            Some(index) if index < last => index + 1,
            _ => 0,
        };
        Ok(next.to_le_bytes().to_vec())
    }

    /// `EINVAL` if a key does not have the map's key size.
    pub(super) fn check_key(&self, key: &[u8]) -> Result<(), Errno> {
        Self::sized(key, self.def.key_size as usize)
    }

    /// `EINVAL` if a program's value does not have the map's value size.
    pub(super) fn check_value(&self, value: &[u8]) -> Result<(), Errno> {
        Self::sized(value, self.def.value_size as usize)
    }

    fn sized(bytes: &[u8], size: usize) -> Result<(), Errno> {
        (bytes.len() == size).then_some(()).ok_or(Errno::EINVAL)
    }

    /// Makes the map read-only for user space (`BPF_MAP_FREEZE`).
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    /// Whether the map is read-only for user space.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// `EPERM` if user space may not read.
    pub(super) fn user_reads(&self) -> Result<(), Errno> {
        let refused = self.def.flags.contains(MapFlags::WRONLY);
        (!refused).then_some(()).ok_or(Errno::EPERM)
    }

    /// `EPERM` if user space may not write (`map_get_sys_perms`, `kernel/bpf/syscall.c`).
    pub(super) fn user_writes(&self) -> Result<(), Errno> {
        let refused = self.def.flags.contains(MapFlags::RDONLY) || self.is_frozen();
        (!refused).then_some(()).ok_or(Errno::EPERM)
    }
}
