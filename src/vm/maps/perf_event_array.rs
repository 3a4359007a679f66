//! Perf buffers, one a CPU (`perf_event_array_map_ops`, `kernel/bpf/arraymap.c`).

use std::sync::{PoisonError, RwLock};

use super::{Kind, Map, index_of, next_index};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`. At first every CPU has its buffer at its index,
/// as perf-buffer readers open them; a test can close some.
#[derive(Debug)]
pub struct PerfEventArray {
    def: MapDef,
    /// Whether a buffer is open at an index.
    open: RwLock<Vec<bool>>,
}

impl PerfEventArray {
    pub(super) fn new(def: MapDef, cpus: u32) -> Self {
        let open = (0..def.max_entries).map(|index| index < cpus).collect();
        Self {
            def,
            open: RwLock::new(open),
        }
    }

    /// Whether a record from `cpu` finds a buffer at an index.
    ///
    /// # Errors
    /// As `__bpf_perf_event_output` (`kernel/trace/bpf_trace.c`): `E2BIG` past the
    /// end, `ENOENT` where no buffer is open, `EOPNOTSUPP` where it is another
    /// CPU's.
    pub fn check(&self, index: u32, cpu: u32) -> Result<(), Errno> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match open.get(index as usize) {
            None => Err(Errno::E2BIG),
            Some(false) => Err(Errno::ENOENT),
            Some(true) if index != cpu => Err(Errno::EOPNOTSUPP),
            Some(true) => Ok(()),
        }
    }

    /// Opens or closes the buffer at an index.
    ///
    /// # Errors
    /// `E2BIG` past the end.
    pub fn set_open(&self, index: u32, open: bool) -> Result<(), Errno> {
        let mut slots = self.open.write().unwrap_or_else(PoisonError::into_inner);
        *slots.get_mut(index as usize).ok_or(Errno::E2BIG)? = open;
        Ok(())
    }
}

impl Map for PerfEventArray {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn kind(&self) -> Kind<'_> {
        Kind::PerfEventArray(self)
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
        // A value is a file descriptor for the kernel: see `set_open`.
        Err(Errno::EBADF)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.set_open(index_of(key)?, false)
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        next_index(key, self.def.max_entries)
    }

    fn read(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;

    #[test]
    fn each_cpu_has_its_own_buffer_until_it_is_closed() {
        let map = PerfEventArray::new(MapDef::new("e", MapType::PerfEventArray, 4, 4, 3), 2);
        assert_eq!(map.check(1, 1), Ok(()));
        assert_eq!(map.check(1, 0), Err(Errno::EOPNOTSUPP));
        assert_eq!(map.check(2, 2), Err(Errno::ENOENT));
        assert_eq!(map.check(3, 3), Err(Errno::E2BIG));
        assert_eq!(map.delete(&1u32.to_le_bytes()), Ok(()));
        assert_eq!(map.check(1, 1), Err(Errno::ENOENT));
    }
}
