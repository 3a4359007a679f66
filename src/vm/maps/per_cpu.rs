//! How user space sees a value: one CPU's as it is, all CPUs' one after another,
//! each rounded up to 8 bytes (`bpf_percpu_hash_copy`, `kernel/bpf/hashtab.c`).

use crate::util::Errno;
use crate::vm::memory::Slab;

/// A map's CPUs: `None` where all of them share each value.
pub(super) type Cpus = Option<u32>;

/// The CPU whose element counts for `cpu`.
pub(super) fn clamp(cpus: Cpus, cpu: u32) -> usize {
    cpus.map_or(0, |cpus| cpu.min(cpus.saturating_sub(1))) as usize
}

/// Bytes of a whole value for user space.
pub(super) fn size(slab: &Slab, cpus: Cpus) -> usize {
    let size = slab.value_size();
    cpus.map_or(size, |cpus| size.next_multiple_of(8) * cpus as usize)
}

/// Reads the elements that `element` gives for each CPU.
pub(super) fn gather(
    slab: &Slab,
    cpus: Cpus,
    element: impl Fn(u32) -> usize,
) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(size(slab, cpus));
    for cpu in 0..cpus.unwrap_or(1) {
        bytes.extend(slab.value(element(cpu)).ok_or(Errno::ENOENT)?);
        if cpus.is_some() {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
    }
    Ok(bytes)
}

/// The value of each CPU in what user space gives.
pub(super) fn scatter<'a>(slab: &Slab, cpus: Cpus, value: &'a [u8]) -> Vec<(u32, &'a [u8])> {
    let size = slab.value_size();
    match cpus {
        None => vec![(0, value)],
        Some(cpus) => {
            let values = value.chunks(size.next_multiple_of(8));
            (0..cpus)
                .zip(values.map(|value| value.get(..size).unwrap_or(value)))
                .collect()
        }
    }
}
