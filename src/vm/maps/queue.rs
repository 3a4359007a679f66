//! Queues and stacks (`kernel/bpf/queue_stack_maps.c`).

use super::base::Base;
use super::lock::{Guard, Lock};
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_QUEUE` and `BPF_MAP_TYPE_STACK`.
#[derive(Debug)]
pub struct Queue {
    base: Base,
    /// Whether it is a stack: the newest value is popped first.
    stack: bool,
    ring: Lock<Ring>,
}

/// A ring of values with room for `max_entries`.
#[derive(Debug)]
struct Ring {
    bytes: Vec<u8>,
    /// Index of the oldest value.
    first: usize,
    len: usize,
}

impl Queue {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            stack: def.map_type == MapType::Stack,
            ring: Lock::new(Ring {
                bytes: vec![0; def.max_entries as usize * def.value_size as usize],
                first: 0,
                len: 0,
            }),
        }
    }

    fn lock(&self) -> Guard<'_, Ring> {
        self.ring.lock()
    }

    /// Byte range of the `n`th oldest value.
    fn range(&self, ring: &Ring, n: usize) -> std::ops::Range<usize> {
        let (count, size) = (self.base.def().max_entries, self.base.def().value_size);
        let start = (ring.first + n) % count.max(1) as usize * size as usize;
        start..start + size as usize
    }

    /// Adds a value. With `BPF_EXIST`, drops the oldest one if the map is full.
    ///
    /// # Errors
    /// `E2BIG` if the map is full, `EINVAL` for other flags.
    pub fn push(&self, value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        if flags.contains(UpdateFlags::NOEXIST) || flags.bits() > UpdateFlags::EXIST.bits() {
            return Err(Errno::EINVAL);
        }
        self.base.check_value(value)?;
        let count = self.base.def().max_entries as usize;
        let mut ring = self.lock();
        if ring.len == count {
            if !flags.contains(UpdateFlags::EXIST) {
                return Err(Errno::E2BIG);
            }
            ring.first = (ring.first + 1) % count;
            ring.len -= 1;
        }
        let range = self.range(&ring, ring.len);
        let slot = ring.bytes.get_mut(range).ok_or(Errno::EINVAL)?;
        slot.copy_from_slice(value);
        ring.len += 1;
        Ok(())
    }

    /// The next value, without removing it.
    ///
    /// # Errors
    /// `ENOENT` if the map is empty.
    pub fn peek(&self) -> Result<Vec<u8>, Errno> {
        self.next(&self.lock())
    }

    /// Removes and returns the next value.
    ///
    /// # Errors
    /// `ENOENT` if the map is empty.
    pub fn pop(&self) -> Result<Vec<u8>, Errno> {
        let mut ring = self.lock();
        let value = self.next(&ring)?;
        if !self.stack {
            ring.first = (ring.first + 1) % self.base.def().max_entries.max(1) as usize;
        }
        ring.len -= 1;
        Ok(value)
    }

    fn next(&self, ring: &Ring) -> Result<Vec<u8>, Errno> {
        let last = ring.len.checked_sub(1).ok_or(Errno::ENOENT)?;
        let range = self.range(ring, if self.stack { last } else { 0 });
        ring.bytes
            .get(range)
            .map(<[u8]>::to_vec)
            .ok_or(Errno::ENOENT)
    }

    /// All values, in the order in which they would be popped.
    #[must_use]
    pub fn values(&self) -> Vec<Vec<u8>> {
        let ring = self.lock();
        let oldest_first = (0..ring.len).filter_map(|n| ring.bytes.get(self.range(&ring, n)));
        let mut values: Vec<_> = oldest_first.map(<[u8]>::to_vec).collect();
        if self.stack {
            values.reverse();
        }
        values
    }
}

impl Map for Queue {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Queue(self)
    }

    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.peek()
    }

    fn sys_update(&self, _key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.push(value, flags)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::EINVAL)
    }
}
