//! Arrays of programs to tail-call (`prog_array_map_ops`, `kernel/bpf/arraymap.c`).

use std::sync::atomic::{AtomicU32, Ordering};

use super::super::handle::ProgramHandle;
use super::base::Base;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_PROG_ARRAY`. User space reads a program's handle as its id; it
/// puts a program in with [`set`](Self::set), there being no file descriptors.
#[derive(Debug)]
pub struct ProgArray {
    base: Base,
    /// For each slot the program's handle, plus 1; 0 where it is empty.
    slots: Box<[AtomicU32]>,
}

impl ProgArray {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            slots: (0..def.max_entries).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The program in a slot; `None` where it is empty or there is no such slot.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<ProgramHandle> {
        let slot = self.slots.get(index as usize)?;
        let handle = slot.load(Ordering::Relaxed).checked_sub(1);
        handle.map(ProgramHandle)
    }

    /// Puts a program into a slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `EPERM` where user space may not write.
    pub fn set(&self, index: u32, program: ProgramHandle) -> Result<(), Errno> {
        self.base.user_writes()?;
        let slot = self.slots.get(index as usize).ok_or(Errno::E2BIG)?;
        let handle = program.0.checked_add(1).ok_or(Errno::EBADF)?;
        slot.store(handle, Ordering::Relaxed);
        Ok(())
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

    /// No number is a program's file descriptor here.
    fn sys_update(&self, key: &[u8], _value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.slot_for_update(key, flags)?;
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        let index = Base::index(key)? as usize;
        let slot = self.slots.get(index).ok_or(Errno::E2BIG)?;
        match slot.swap(0, Ordering::Relaxed) {
            0 => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
