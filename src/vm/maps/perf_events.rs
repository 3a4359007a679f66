//! Perf event arrays, the targets of records (`kernel/bpf/arraymap.c`,
//! `__bpf_perf_event_output` in `kernel/trace/bpf_trace.c`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::base::Base;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// A perf counter (`struct bpf_perf_event_value`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// The counter's value.
    pub counter: u64,
    /// For how many nanoseconds it was enabled.
    pub enabled: u64,
    /// For how many nanoseconds it was counting: less than enabled if counters are multiplexed.
    pub running: u64,
}

impl Counter {
    /// Size of a `struct bpf_perf_event_value`.
    pub const SIZE: usize = 24;

    /// The bytes of the `struct bpf_perf_event_value`.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let words = [self.counter, self.enabled, self.running];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl From<u64> for Counter {
    /// A counter with this value and zero times.
    fn from(counter: u64) -> Self {
        Self {
            counter,
            ..Self::default()
        }
    }
}

/// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`. By default, each slot below the number of CPUs holds that
/// CPU's buffer, as libbpf's `perf_buffer__new` opens them. A test can [`set`](Self::set) it
/// differently.
#[derive(Debug)]
pub struct PerfEventArray {
    base: Base,
    /// The event in each slot.
    slots: Mutex<Vec<Option<Slot>>>,
}

/// A perf event.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The event's CPU.
    cpu: u32,
    /// The counter's value; `None` for a CPU's buffer.
    counter: Option<Counter>,
}

impl PerfEventArray {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let buffer = |cpu| Slot { cpu, counter: None };
        let slots = (0..def.max_entries).map(|slot| (slot < cpus).then(|| buffer(slot)));
        Self {
            base: Base::new(def, cpus),
            slots: Mutex::new(slots.collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the buffer of a slot to that of `cpu`, or clears the slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `ENODEV` for a CPU that does not exist.
    pub fn set(&self, slot: u32, cpu: Option<u32>) -> Result<(), Errno> {
        self.put(slot, cpu.map(|cpu| Slot { cpu, counter: None }))
    }

    fn put(&self, slot: u32, event: Option<Slot>) -> Result<(), Errno> {
        if event.is_some_and(|event| event.cpu >= self.base.cpus()) {
            return Err(Errno::ENODEV);
        }
        let mut slots = self.lock();
        *slots.get_mut(slot as usize).ok_or(Errno::E2BIG)? = event;
        Ok(())
    }

    /// Sets a slot to a counter of `cpu`, for `bpf_perf_event_read_value`, or clears the slot.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub fn set_counter(&self, slot: u32, cpu: u32, counter: Option<Counter>) -> Result<(), Errno> {
        let event = counter.map(|counter| Slot {
            cpu,
            counter: Some(counter),
        });
        self.put(slot, event)
    }

    /// The counter that a program on `cpu` reads through a slot (`get_map_perf_counter`,
    /// `kernel/trace/bpf_trace.c`). Zero for a buffer.
    ///
    /// # Errors
    /// `E2BIG` past the end, `ENOENT` for an empty slot, `EINVAL` if the slot has another CPU's
    /// event.
    pub fn counter(&self, slot: u32, cpu: u32) -> Result<Counter, Errno> {
        match self.lock().get(slot as usize) {
            None => Err(Errno::E2BIG),
            Some(None) => Err(Errno::ENOENT),
            Some(Some(event)) if event.cpu != cpu => Err(Errno::EINVAL),
            Some(Some(event)) => Ok(event.counter.unwrap_or_default()),
        }
    }

    /// Checks that a program on `cpu` may send a record through a slot.
    ///
    /// # Errors
    /// `E2BIG` past the end, `ENOENT` for an empty slot, `EINVAL` for a counter,
    /// `EOPNOTSUPP` if the slot has another CPU's buffer.
    pub fn accepts(&self, slot: u32, cpu: u32) -> Result<(), Errno> {
        match self.lock().get(slot as usize) {
            None => Err(Errno::E2BIG),
            Some(None) => Err(Errno::ENOENT),
            Some(Some(event)) if event.counter.is_some() => Err(Errno::EINVAL),
            Some(Some(event)) if event.cpu != cpu => Err(Errno::EOPNOTSUPP),
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

    /// Always fails: there are no file descriptors of perf events.
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
