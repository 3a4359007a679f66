//! Values by their number, one for all CPUs or one for each.
//!
//! Fields that the kernel watches over (locks, timers, kernel pointers) are left alone when
//! a value is written, and zero in a copy of one (`copy_map_value` and
//! `check_and_init_map_value`, `include/linux/bpf.h`). When an element goes, or an array's
//! is written, they are freed: all but locks become zero (`bpf_obj_free_fields`,
//! `kernel/bpf/syscall.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::super::patience::Patience;
use crate::btf::{FieldKind, SpecialFields};
use crate::util::Errno;

/// The values of an array or of a hash's slots, with both views of them.
#[derive(Debug)]
pub(super) struct Values {
    slab: Arc<Slab>,
    /// Elements, of one CPU.
    count: usize,
    /// CPUs with values of their own; `None` where all share one.
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

    /// The values of a map with keys.
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

    /// The same with these special fields in each value.
    pub(super) fn watching(mut self, special: &SpecialFields) -> Self {
        self.special = special.clone();
        self
    }

    /// The storage, to be put into the address space.
    pub(super) const fn slab(&self) -> &Arc<Slab> {
        &self.slab
    }

    /// Elements of one CPU.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether each CPU has values of its own.
    pub(super) const fn per_cpu(&self) -> bool {
        self.cpus.is_some()
    }

    /// The slab's element for an index, as a program on `cpu` sees it; `None` for
    /// a CPU that has no values.
    pub(super) fn element(&self, cpu: u32, index: usize) -> Option<usize> {
        match self.cpus {
            None => Some(index),
            Some(cpus) => (cpu < cpus).then(|| cpu as usize * self.count + index),
        }
    }

    /// The indices of all CPUs' elements.
    fn elements(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.count;
        (0..self.cpus.unwrap_or(1) as usize).map(move |cpu| cpu * count + index)
    }

    /// Sets the value that a program on `cpu` sees, apart from its special fields.
    pub(super) fn set(&self, cpu: u32, index: usize, value: &[u8]) -> Result<(), Errno> {
        let element = self.element(cpu, index).ok_or(Errno::EINVAL)?;
        self.copy_in(element, value)
    }

    /// Sets the value of `cpu` in a new element, zero on all other CPUs
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

    /// What user space reads: the values of all CPUs, each rounded up to 8 bytes.
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

    /// What user space writes; the counterpart of [`read`](Self::read).
    pub(super) fn write(&self, index: usize, bytes: &[u8]) -> Result<(), Errno> {
        let size = self.slab.value_size();
        if !self.per_cpu() {
            return self.copy_in(index, bytes);
        }
        let values = bytes.chunks_exact(size.next_multiple_of(8));
        for (element, value) in self.elements(index).zip(values) {
            self.copy_in(element, value.get(..size).ok_or(Errno::EINVAL)?)?;
        }
        Ok(())
    }

    /// Writes to an element, its special fields aside.
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

    /// Reads an element, its special fields as zeros.
    fn copy_out(&self, element: usize) -> Result<Vec<u8>, Errno> {
        let mut value = self.slab.value(element).ok_or(Errno::ENOENT)?;
        for field in self.special.iter() {
            value.get_mut(field.range()).unwrap_or_default().fill(0);
        }
        Ok(value)
    }

    /// Makes the special fields of all CPUs' elements zero, apart from locks.
    pub(super) fn free_fields(&self, index: usize) {
        for element in self.elements(index) {
            self.free_element_fields(element);
        }
    }

    /// The same for what a program on `cpu` sees.
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

    /// Does something while holding an element's lock: `EINVAL` where it has none,
    /// `EDEADLK` where it has not been released for 10 seconds (the kernel waits on).
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
        let mut patience = Patience::default();
        while swap(1)? != 0 {
            if !patience.wait() {
                return Err(Errno::EDEADLK);
            }
        }
        let result = then();
        swap(0)?;
        result
    }
}
