//! Program arrays for tail calls (`prog_array_map_ops`, `kernel/bpf/arraymap.c`).

use super::base::Base;
use super::handle::ProgramHandle;
use super::handles::Handles;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_PROG_ARRAY`. There are no file descriptors: user space reads a program's
/// handle as its id, and a test inserts programs with [`set`](Self::set).
#[derive(Debug)]
pub struct ProgArray {
    base: Base,
    slots: Handles,
}

impl ProgArray {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            slots: Handles::new(def.max_entries),
        }
    }

    /// The program in a slot; `None` if it is empty or there is no such slot.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<ProgramHandle> {
        self.slots.get(index).map(ProgramHandle)
    }

    /// Sets the program of a slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `EPERM` if user space may not write.
    pub fn set(&self, index: u32, program: ProgramHandle) -> Result<(), Errno> {
        self.base.user_writes()?;
        self.slots.set(index, program.0)
    }
}

impl Map for ProgArray {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::ProgArray(self)
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let program = self.get(Base::index(key)?).ok_or(Errno::ENOENT)?;
        Ok(program.0.to_le_bytes().to_vec())
    }

    /// Always fails: there are no file descriptors of programs.
    fn sys_update(&self, key: &[u8], _value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.slot_for_update(key, flags)?;
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.slots.remove(Base::index(key)?)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
