//! Values by their number, one for all CPUs or one for each.

use std::sync::Arc;

use super::super::memory::Slab;
use crate::util::Errno;

/// The values of an array or of a hash's slots, with both views of them.
#[derive(Debug)]
pub(super) struct Values {
    slab: Arc<Slab>,
    /// Elements, of one CPU.
    count: usize,
    /// CPUs with values of their own; `None` where all share one.
    cpus: Option<u32>,
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
        }
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

    /// Sets the value that a program on `cpu` sees.
    pub(super) fn set(&self, cpu: u32, index: usize, value: &[u8]) -> Result<(), Errno> {
        let element = self.element(cpu, index).ok_or(Errno::EINVAL)?;
        self.slab.set_value(element, value).ok_or(Errno::EINVAL)
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
            return self.slab.value(index).ok_or(Errno::ENOENT);
        }
        let mut all = Vec::new();
        for element in self.elements(index) {
            all.extend(self.slab.value(element).ok_or(Errno::ENOENT)?);
            all.resize(all.len().next_multiple_of(8), 0);
        }
        Ok(all)
    }

    /// What user space writes; the counterpart of [`read`](Self::read).
    pub(super) fn write(&self, index: usize, bytes: &[u8]) -> Result<(), Errno> {
        let size = self.slab.value_size();
        if !self.per_cpu() {
            return self.slab.set_value(index, bytes).ok_or(Errno::EINVAL);
        }
        let values = bytes.chunks_exact(size.next_multiple_of(8));
        for (element, value) in self.elements(index).zip(values) {
            let value = value.get(..size).ok_or(Errno::EINVAL)?;
            self.slab.set_value(element, value).ok_or(Errno::EINVAL)?;
        }
        Ok(())
    }
}
