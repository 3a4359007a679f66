//! Reads all elements of a map, in batches if the kernel supports that.

use crate::kernel::kernel_map::KernelMap;
use crate::kernel::keys::for_each_key;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// Initial and largest number of elements in a batch, limited by the map's capacity: the kernel
/// needs room for a whole bucket of a hash map.
const FIRST: u32 = 256;
const MOST: u32 = 1 << 20;

/// The elements of a map: keys and values, each one after the other. Values of a per-CPU map
/// hold those of all possible CPUs, each padded to 8 bytes.
///
/// This is no snapshot: elements that programs add or delete during the read may be included or
/// not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    key_size: usize,
    value_size: usize,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Contents {
    /// Reads a map.
    ///
    /// # Errors
    /// The kernel's error: `ENOTSUPP` or `EINVAL` for maps that can't be iterated, such as
    /// queues and ring buffers.
    pub fn read(map: &KernelMap<'_>) -> Result<Self, Errno> {
        let mut contents = Self {
            key_size: map.key_size(),
            value_size: map.value_size(),
            ..Self::default()
        };
        match contents.read_batches(map) {
            // The type or the kernel (before 5.6) has no batches, or a bucket is too large.
            Err(Errno::ENOTSUPP | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSPC) => {
                contents.keys.clear();
                contents.values.clear();
                contents.read_one_by_one(map)?;
            }
            read => read?,
        }
        Ok(contents)
    }

    fn read_batches(&mut self, map: &KernelMap<'_>) -> Result<(), Errno> {
        let room = map.fd().max_entries().max(1);
        let (mut count, most) = (FIRST.min(room), MOST.min(room));
        let mut from: Option<Vec<u8>> = None;
        loop {
            let batch = map.lookup_batch(from.as_deref(), count, UpdateFlags::empty());
            match batch.result {
                Ok(()) | Err(Errno::ENOENT) => {
                    self.keys.extend_from_slice(&batch.keys);
                    self.values.extend_from_slice(&batch.values);
                }
                // A bucket does not fit; retry with a larger batch.
                Err(Errno::ENOSPC) if count < most => {
                    count = count.saturating_mul(4).min(most);
                    continue;
                }
                Err(errno) => return Err(errno),
            }
            if batch.result.is_err() {
                return Ok(());
            }
            from = Some(batch.next);
        }
    }

    fn read_one_by_one(&mut self, map: &KernelMap<'_>) -> Result<(), Errno> {
        let each = |key: &[u8]| match map.lookup(key, UpdateFlags::empty()) {
            Ok(value) => {
                self.keys.extend_from_slice(key);
                self.values.extend_from_slice(&value);
                Ok(())
            }
            // It has been deleted since, or is an empty slot.
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno),
        };
        for_each_key(map.fd().max_entries(), |key| map.next_key(key), each)
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len().checked_div(self.key_size).unwrap_or(0)
    }

    /// Whether the map was empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Each key and its value, in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let keys = self.keys.chunks_exact(self.key_size.max(1));
        keys.zip(self.values.chunks_exact(self.value_size.max(1)))
    }

    /// The elements of a per-CPU map whose values have `value_size` bytes: each key with the
    /// values by CPU number.
    pub fn per_cpu(
        &self,
        value_size: usize,
    ) -> impl Iterator<Item = (&[u8], impl Iterator<Item = &[u8]>)> {
        let padded = value_size.next_multiple_of(8).max(8);
        self.iter().map(move |(key, values)| {
            let cpus = values.chunks_exact(padded);
            (
                key,
                cpus.map(move |value| value.get(..value_size).unwrap_or(value)),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_told_apart() {
        let contents = Contents {
            key_size: 2,
            value_size: 16,
            keys: vec![1, 0, 2, 0],
            values: (0..32).collect(),
        };
        assert_eq!((contents.len(), contents.is_empty()), (2, false));
        let keys: Vec<_> = contents.iter().map(|(key, _)| key[0]).collect();
        assert_eq!(keys, [1, 2]);
        let (_, cpus) = contents.per_cpu(3).nth(1).unwrap();
        assert_eq!(cpus.collect::<Vec<_>>(), [[16, 17, 18], [24, 25, 26]]);
        assert_eq!(Contents::default().iter().count(), 0);
    }
}
