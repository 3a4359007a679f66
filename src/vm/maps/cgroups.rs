//! Arrays of cgroups (`cgroup_array_map_ops`, `kernel/bpf/arraymap.c`).

use super::base::Base;
use super::objects::Slots;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_CGROUP_ARRAY`. There are no file descriptors: cgroups are identified by the
/// address of their `struct cgroup`, and a test inserts them with [`set`](Self::set).
#[derive(Debug)]
pub struct CgroupArray {
    base: Base,
    slots: Slots,
}

impl CgroupArray {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            slots: Slots::new(def.max_entries),
        }
    }

    /// The cgroup in a slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `EAGAIN` if the slot is empty, as
    /// `bpf_current_task_under_cgroup` returns them.
    pub fn cgroup(&self, index: u32) -> Result<u64, Errno> {
        if index >= self.base.def().max_entries {
            return Err(Errno::E2BIG);
        }
        self.slots.get(index).ok_or(Errno::EAGAIN)
    }

    /// Sets the cgroup of a slot.
    ///
    /// # Errors
    /// `EINVAL` for flags, `E2BIG` past the end, `EBADF` for a null pointer, `EPERM` if user
    /// space may not write.
    pub fn set(&self, key: &[u8], cgroup: u64, flags: UpdateFlags) -> Result<(), Errno> {
        self.base.user_writes()?;
        let slot = self.base.slot_for_update(key, flags)?;
        if cgroup == 0 {
            return Err(Errno::EBADF);
        }
        self.slots.set(slot, cgroup)
    }
}

impl Map for CgroupArray {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Cgroups(self)
    }

    /// Cgroups can't be read back.
    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Always fails: there are no file descriptors of cgroups.
    fn sys_update(&self, key: &[u8], _value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.slot_for_update(key, flags)?;
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        let slot = self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        self.slots.take(slot).map(drop).ok_or(Errno::ENOENT)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
