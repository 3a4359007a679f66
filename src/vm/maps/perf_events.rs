//! Arrays of perf events, which records are sent to (`kernel/bpf/arraymap.c`,
//! `__bpf_perf_event_output` in `kernel/trace/bpf_trace.c`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::base::Base;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`. Each slot below the number of CPUs holds the
/// buffer of the CPU of its number, as libbpf's `perf_buffer__new` opens them,
/// unless a test [`set`](Self::set)s it otherwise.
#[derive(Debug)]
pub struct PerfEventArray {
    base: Base,
    /// For each slot the CPU whose buffer it holds.
    slots: Mutex<Vec<Option<u32>>>,
}

impl PerfEventArray {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let slots = (0..def.max_entries).map(|slot| (slot < cpus).then_some(slot));
        Self {
            base: Base::new(def, cpus),
            slots: Mutex::new(slots.collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<u32>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the buffer of `cpu` into a slot, or takes it away.
    ///
    /// # Errors
    /// `E2BIG` past the end, `ENODEV` for a CPU that is not there.
    pub fn set(&self, slot: u32, cpu: Option<u32>) -> Result<(), Errno> {
        if cpu.is_some_and(|cpu| cpu >= self.base.cpus()) {
            return Err(Errno::ENODEV);
        }
        let mut slots = self.lock();
        *slots.get_mut(slot as usize).ok_or(Errno::E2BIG)? = cpu;
        Ok(())
    }

    /// Whether a program on `cpu` may send a record through a slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `ENOENT` for an empty slot, `EOPNOTSUPP` where the
    /// slot has another CPU's buffer.
    pub fn accepts(&self, slot: u32, cpu: u32) -> Result<(), Errno> {
        match self.lock().get(slot as usize) {
            None => Err(Errno::E2BIG),
            Some(None) => Err(Errno::ENOENT),
            Some(Some(of)) if *of != cpu => Err(Errno::EOPNOTSUPP),
            Some(Some(_)) => Ok(()),
        }
    }
}

impl Map for PerfEventArray {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::PerfEventArray(self)
    }

    /// Perf events can't be read back.
    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// No number is a perf event's file descriptor here.
    fn sys_update(&self, key: &[u8], _value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.slot_for_update(key, flags)?;
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        let slot = Base::index(key)? as usize;
        let mut slots = self.lock();
        let slot = slots.get_mut(slot).ok_or(Errno::E2BIG)?;
        slot.take().map(drop).ok_or(Errno::ENOENT)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
