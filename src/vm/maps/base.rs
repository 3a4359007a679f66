//! What every map has: its definition, its CPUs, and who may touch it.

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

/// What an update may do (`BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`).
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
    /// Reads the flags of an update of a kind that knows no `BPF_F_LOCK`.
    pub(super) const fn of(flags: UpdateFlags) -> Result<Self, Errno> {
        match flags.bits() {
            0 => Ok(Self::Any),
            1 => Ok(Self::NoExist),
            2 => Ok(Self::Exist),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Reads an update's flags apart from `BPF_F_LOCK`.
    pub(super) const fn without_lock(flags: UpdateFlags) -> Result<Self, Errno> {
        Self::of(flags.difference(UpdateFlags::LOCK))
    }

    /// Whether an element that is there, or is not, may be written
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
    /// The common part of a map on a machine with so many CPUs.
    #[must_use]
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            def: def.clone(),
            cpus,
            frozen: AtomicBool::new(false),
        }
    }

    /// What the map was made from.
    #[must_use]
    pub const fn def(&self) -> &MapDef {
        &self.def
    }

    /// Number of CPUs of the machine it was made for.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.cpus
    }

    /// `EINVAL` where `BPF_F_LOCK` is asked for, and a value has no `bpf_spin_lock`.
    pub(super) fn check_lock(&self, flags: UpdateFlags) -> Result<(), Errno> {
        let refused = flags.contains(UpdateFlags::LOCK)
            && self.def.special.find(FieldKind::SpinLock).is_none();
        (!refused).then_some(()).ok_or(Errno::EINVAL)
    }

    /// `EINVAL` for flags of a look-up other than `BPF_F_LOCK`, and as of
    /// [`check_lock`](Self::check_lock).
    pub(super) fn check_read(&self, flags: UpdateFlags) -> Result<(), Errno> {
        if !UpdateFlags::LOCK.contains(flags) {
            return Err(Errno::EINVAL);
        }
        self.check_lock(flags)
    }

    /// The array index that a key is; `EINVAL` where it has not four bytes.
    pub(super) fn index(key: &[u8]) -> Result<u32, Errno> {
        key.try_into()
            .map(u32::from_le_bytes)
            .map_err(|_| Errno::EINVAL)
    }

    /// The array index that a key is, if it is one of the map's.
    pub(super) fn index_within(&self, key: &[u8]) -> Result<Option<u32>, Errno> {
        let index = Self::index(key)?;
        Ok((index < self.def.max_entries).then_some(index))
    }

    /// The slot that an update of an array of descriptors writes
    /// (`bpf_fd_array_map_update_elem`, `kernel/bpf/arraymap.c`): no flags, and
    /// `E2BIG` past the end.
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

    /// Keys and values that have the map's sizes; `EINVAL` for others.
    pub(super) fn check_key(&self, key: &[u8]) -> Result<(), Errno> {
        Self::sized(key, self.def.key_size as usize)
    }

    /// As [`check_key`](Self::check_key), for a program's value.
    pub(super) fn check_value(&self, value: &[u8]) -> Result<(), Errno> {
        Self::sized(value, self.def.value_size as usize)
    }

    fn sized(bytes: &[u8], size: usize) -> Result<(), Errno> {
        (bytes.len() == size).then_some(()).ok_or(Errno::EINVAL)
    }

    /// From now on user space only reads (`BPF_MAP_FREEZE`).
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    /// Whether user space may only read.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// `EPERM` where the system call may not read.
    pub(super) fn user_reads(&self) -> Result<(), Errno> {
        let refused = self.def.flags.contains(MapFlags::WRONLY);
        (!refused).then_some(()).ok_or(Errno::EPERM)
    }

    /// `EPERM` where the system call may not write (`map_get_sys_perms`,
    /// `kernel/bpf/syscall.c`).
    pub(super) fn user_writes(&self) -> Result<(), Errno> {
        let refused = self.def.flags.contains(MapFlags::RDONLY) || self.is_frozen();
        (!refused).then_some(()).ok_or(Errno::EPERM)
    }
}
