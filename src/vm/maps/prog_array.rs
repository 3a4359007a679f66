//! Programs to tail-call (`prog_array_map_ops`, `kernel/bpf/arraymap.c`).

use std::sync::{PoisonError, RwLock};

use super::{Kind, Map, index_of, next_index};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;
use crate::vm::handle::ProgramHandle;

/// `BPF_MAP_TYPE_PROG_ARRAY`. User space puts programs in and reads their ids;
/// programs only jump through it.
#[derive(Debug)]
pub struct ProgArray {
    def: MapDef,
    slots: RwLock<Vec<Option<ProgramHandle>>>,
}

impl ProgArray {
    pub(super) fn new(def: MapDef) -> Self {
        let slots = RwLock::new(vec![None; def.max_entries as usize]);
        Self { def, slots }
    }

    /// The program at an index.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<ProgramHandle> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(index as usize).copied().flatten()
    }

    /// Puts a program at an index.
    ///
    /// # Errors
    /// `E2BIG` past the end.
    pub fn set(&self, index: u32, program: ProgramHandle) -> Result<(), Errno> {
        self.replace(index, Some(program)).map(|_| ())
    }

    fn replace(
        &self,
        index: u32,
        program: Option<ProgramHandle>,
    ) -> Result<Option<ProgramHandle>, Errno> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get_mut(index as usize).ok_or(Errno::E2BIG)?;
        Ok(std::mem::replace(slot, program))
    }
}

impl Map for ProgArray {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn kind(&self) -> Kind<'_> {
        Kind::ProgArray(self)
    }

    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        _value: &[u8],
        _flags: UpdateFlags,
    ) -> Result<(), Errno> {
        // A value is a file descriptor for the kernel: see `set`.
        Err(Errno::EBADF)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.replace(index_of(key)?, None)?
            .map(|_| ())
            .ok_or(Errno::ENOENT)
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        next_index(key, self.def.max_entries)
    }

    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let program = self.get(index_of(key)?).ok_or(Errno::ENOENT)?;
        Ok(program.0.to_le_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;

    #[test]
    fn slots_are_set_read_and_emptied() {
        let map = ProgArray::new(MapDef::new("jumps", MapType::ProgArray, 4, 4, 2));
        assert_eq!(map.set(1, ProgramHandle(7)), Ok(()));
        assert_eq!(map.set(2, ProgramHandle(7)), Err(Errno::E2BIG));
        assert_eq!(map.get(1), Some(ProgramHandle(7)));
        assert_eq!(map.read(&1u32.to_le_bytes()), Ok(vec![7, 0, 0, 0]));
        assert_eq!(map.delete(&1u32.to_le_bytes()), Ok(()));
        assert_eq!(map.delete(&1u32.to_le_bytes()), Err(Errno::ENOENT));
        assert_eq!(map.get(1), None);
    }
}
