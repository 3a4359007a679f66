//! Values by index, shared or per CPU.
//!
//! Special fields (locks, timers, kernel pointers) are not changed by writing a value, and are
//! zero in a copy of one (`copy_map_value` and `check_and_init_map_value`,
//! `include/linux/bpf.h`). When an element is deleted, or an array's element is written, they
//! are freed: all but locks become zero (`bpf_obj_free_fields`, `kernel/bpf/syscall.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::lock_wait::LockWait;
use crate::btf::{FieldKind, SpecialFields};
use crate::util::Errno;

/// The values of an array or of a hash's slots, as programs and as user space see them.
#[derive(Debug)]
pub(super) struct Values {
    slab: Arc<Slab>,
    /// Number of elements per CPU.
    count: usize,
    /// Number of CPUs with their own values; `None` if all share one.
    cpus: Option<u32>,
    special: SpecialFields,
}

impl Values {
    /// The values of an array.
    pub(super) fn array(value_size: u32, count: usize, cpus: Option<u32>) -> Self {
        let size = value_size as usize;
        let slab = match cpus {
            Some(cpus) => Slab::per_cpu_array(size, count, cpus as usize),
            None => Slab::array(size, count),
        };
        Self {
            slab: Arc::new(slab),
            count,
            cpus,
            special: SpecialFields::default(),
        }
    }

    /// The values of a keyed map.
    pub(super) fn keyed(key_size: u32, value_size: u32, count: usize, cpus: Option<u32>) -> Self {
        let (key, size) = (key_size as usize, value_size as usize);
        let slab = match cpus {
            Some(cpus) => Slab::per_cpu_keyed(key, size, count, cpus as usize),
            None => Slab::keyed(key, size, count),
        };
        Self {
            slab: Arc::new(slab),
            count,
            cpus,
            special: SpecialFields::default(),
        }
    }

    /// Sets the special fields of each value.
    pub(super) fn watching(mut self, special: &SpecialFields) -> Self {
        self.special = special.clone();
        self
    }

    /// The storage, to be inserted into the address space.
    pub(super) const fn slab(&self) -> &Arc<Slab> {
        &self.slab
    }

    /// Number of elements per CPU.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether each CPU has its own values.
    pub(super) const fn per_cpu(&self) -> bool {
        self.cpus.is_some()
    }

    /// The slab's element for an index, as a program on `cpu` sees it; `None` if the CPU has no
    /// values.
    pub(super) fn element(&self, cpu: u32, index: usize) -> Option<usize> {
        match self.cpus {
            None => Some(index),
            Some(cpus) => (cpu < cpus).then(|| cpu as usize * self.count + index),
        }
    }

    /// The elements of an index, on all CPUs.
    fn elements(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.count;
        (0..self.cpus.unwrap_or(1) as usize).map(move |cpu| cpu * count + index)
    }

    /// Sets the value that a program on `cpu` sees, except for special fields.
    pub(super) fn set(&self, cpu: u32, index: usize, value: &[u8]) -> Result<(), Errno> {
        let element = self.element(cpu, index).ok_or(Errno::EINVAL)?;
        self.copy_in(element, value)
    }

    /// Initialises a new element: sets the value of `cpu`, and zeroes those of all other CPUs
    /// (`pcpu_init_value`, `kernel/bpf/hashtab.c`).
    pub(super) fn init(&self, cpu: u32, index: usize, value: &[u8]) -> Result<(), Errno> {
        if self.per_cpu() {
            let zeros = vec![0; value.len()];
            for element in self.elements(index) {
                self.slab.set_value(element, &zeros);
            }
        }
        self.set(cpu, index, value)
    }

    /// The value as user space reads it: the values of all CPUs, each rounded up to 8 bytes.
    pub(super) fn read(&self, index: usize) -> Result<Vec<u8>, Errno> {
        if !self.per_cpu() {
            return self.copy_out(index);
        }
        let mut all = Vec::new();
        for element in self.elements(index) {
            all.extend(self.copy_out(element)?);
            all.resize(all.len().next_multiple_of(8), 0);
        }
        Ok(all)
    }

    /// Writes a value of user space, with its pointers to user memory (`bpf_obj_swap_uptrs`); the
    /// counterpart of [`read`](Self::read).
    pub(super) fn write(&self, index: usize, bytes: &[u8]) -> Result<(), Errno> {
        let size = self.slab.value_size();
        if !self.per_cpu() {
            self.copy_in(index, bytes)?;
            let (at, values) = (self.slab.offset(index), self.slab.values());
            for field in self.special.iter().filter(|it| it.kind == FieldKind::Uptr) {
                let written = bytes
                    .get(field.range())
                    .and_then(|pointer| values.write(at + field.range().start, pointer));
                written.ok_or(Errno::EINVAL)?;
            }
            return Ok(());
        }
        let values = bytes.chunks_exact(size.next_multiple_of(8));
        for (element, value) in self.elements(index).zip(values) {
            self.copy_in(element, value.get(..size).ok_or(Errno::EINVAL)?)?;
        }
        Ok(())
    }

    /// Writes to an element, except for special fields.
    fn copy_in(&self, element: usize, value: &[u8]) -> Result<(), Errno> {
        if self.special.is_empty() {
            return self.slab.set_value(element, value).ok_or(Errno::EINVAL);
        }
        if element >= self.slab.count() || value.len() > self.slab.value_size() {
            return Err(Errno::EINVAL);
        }
        let (at, bytes) = (self.slab.offset(element), self.slab.values());
        for piece in self.special.gaps(value.len()) {
            let written = value
                .get(piece.clone())
                .and_then(|part| bytes.write(at + piece.start, part));
            written.ok_or(Errno::EINVAL)?;
        }
        Ok(())
    }

    /// Reads an element, with special fields as zeros.
    fn copy_out(&self, element: usize) -> Result<Vec<u8>, Errno> {
        let mut value = self.slab.value(element).ok_or(Errno::ENOENT)?;
        for field in self.special.iter() {
            value.get_mut(field.range()).unwrap_or_default().fill(0);
        }
        Ok(value)
    }

    /// Zeroes the special fields of an index on all CPUs, except for locks.
    pub(super) fn free_fields(&self, index: usize) {
        for element in self.elements(index) {
            self.free_element_fields(element);
        }
    }

    /// Zeroes the special fields that a program on `cpu` sees, except for locks.
    pub(super) fn free_fields_of(&self, cpu: u32, index: usize) {
        if let Some(element) = self.element(cpu, index) {
            self.free_element_fields(element);
        }
    }

    fn free_element_fields(&self, element: usize) {
        let (at, bytes) = (self.slab.offset(element), self.slab.values());
        let is_lock = |kind| matches!(kind, FieldKind::SpinLock | FieldKind::ResSpinLock);
        for field in self.special.iter().filter(|field| !is_lock(field.kind)) {
            bytes.write(at + field.range().start, &vec![0; field.range().len()]);
        }
    }

    /// Writes a value with its lock held (`copy_map_value_locked`).
    pub(super) fn write_locked(&self, element: usize, value: &[u8]) -> Result<(), Errno> {
        self.locked(element, || self.copy_in(element, value))
    }

    /// Reads a value with its lock held.
    pub(super) fn read_locked(&self, element: usize) -> Result<Vec<u8>, Errno> {
        self.locked(element, || self.copy_out(element))
    }

    /// Calls `then` while holding an element's lock: `EINVAL` if it has none, `EDEADLK` if it is
    /// not released for 10 seconds (the kernel waits on).
    fn locked<T>(
        &self,
        element: usize,
        then: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let lock = self.special.find(FieldKind::SpinLock);
        let at = self.slab.offset(element) + lock.ok_or(Errno::EINVAL)?.range().start;
        let swap = |held| {
            let old = self.slab.values().update(at, 4, |_| held);
            old.ok_or(Errno::EINVAL)
        };
        let mut lock_wait = LockWait::default();
        while swap(1)? != 0 {
            if !lock_wait.wait() {
                return Err(Errno::EDEADLK);
            }
        }
        let result = then();
        swap(0)?;
        result
    }
}
