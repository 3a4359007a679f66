//! Longest-prefix match (`kernel/bpf/lpm_trie.c`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Demand, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;
use crate::vm::memory::Slab;

/// `BPF_MAP_TYPE_LPM_TRIE`. A key is a `u32` number of bits and as many bytes as
/// the map's keys have; bits beyond the number don't count.
#[derive(Debug)]
pub(super) struct LpmTrie {
    def: MapDef,
    slab: Arc<Slab>,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    /// By the prefix's bytes, then the longer first, as user space walks them.
    elements: BTreeMap<Prefix, u32>,
    free: Vec<u32>,
    fresh: u32,
}

/// A key without the bits that don't count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    bytes: Vec<u8>,
    /// Negated, so that of equal bytes the longer prefix comes first.
    bits: std::cmp::Reverse<u32>,
}

impl Prefix {
    /// The first `bits` bits of `bytes`.
    fn new(bytes: &[u8], bits: u32) -> Self {
        let mut bytes = bytes.to_vec();
        for (byte, before) in bytes.iter_mut().zip((0u32..).step_by(8)) {
            let kept = bits.saturating_sub(before).min(8);
            *byte &= u8::MAX.checked_shl(8 - kept).unwrap_or(0);
        }
        Self {
            bytes,
            bits: std::cmp::Reverse(bits),
        }
    }

    fn key(&self) -> Vec<u8> {
        let mut key = self.bits.0.to_le_bytes().to_vec();
        key.extend(&self.bytes);
        key
    }
}

impl LpmTrie {
    pub fn new(def: MapDef) -> Self {
        let (key, value) = (def.key_size as usize, def.value_size as usize);
        // One more: an updated prefix gets a new element while the old one is held.
        let slab = Slab::keyed(key, value, def.max_entries as usize + 1);
        Self {
            def,
            slab: Arc::new(slab),
            index: Mutex::default(),
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a key: its number of bits and its bytes.
    fn parse<'a>(&self, key: &'a [u8]) -> Result<(u32, &'a [u8]), Errno> {
        let (bits, bytes) = key.split_first_chunk().ok_or(Errno::EINVAL)?;
        let bits = u32::from_le_bytes(*bits);
        if bytes.len() + 4 != self.def.key_size as usize || bits as usize > bytes.len() * 8 {
            return Err(Errno::EINVAL);
        }
        Ok((bits, bytes))
    }
}

impl Map for LpmTrie {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(&self.slab)
    }

    fn lookup(&self, _cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let Ok((bits, bytes)) = self.parse(key) else {
            return Ok(None);
        };
        let index = self.index();
        let mut lengths = (0..=bits).rev().map(|bits| Prefix::new(bytes, bits));
        let found = lengths.find_map(|prefix| index.elements.get(&prefix).copied());
        Ok(found.map(|element| element as usize))
    }

    fn update(&self, _cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let demand = Demand::of(flags)?;
        let (bits, bytes) = self.parse(key)?;
        let prefix = Prefix::new(bytes, bits);
        let mut index = self.index();
        let old = index.elements.get(&prefix).copied();
        demand.check(old.is_some())?;
        if old.is_none() && index.elements.len() >= self.def.max_entries as usize {
            return Err(Errno::ENOSPC);
        }
        let element = index.free.pop().unwrap_or_else(|| {
            index.fresh += 1;
            index.fresh - 1
        });
        self.slab
            .set_value(element as usize, value)
            .ok_or(Errno::EINVAL)?;
        self.slab
            .revive(element as usize, &prefix.key())
            .ok_or(Errno::EINVAL)?;
        if let Some(old) = index.elements.insert(prefix, element) {
            self.slab.kill(old as usize);
            index.free.push(old);
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let (bits, bytes) = self.parse(key)?;
        let mut index = self.index();
        let element = index
            .elements
            .remove(&Prefix::new(bytes, bits))
            .ok_or(Errno::ENOENT)?;
        self.slab.kill(element as usize);
        index.free.push(element);
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let index = self.index();
        let after = key.and_then(|key| self.parse(key).ok());
        let after = after.map(|(bits, bytes)| Prefix::new(bytes, bits));
        let next = match after.filter(|prefix| index.elements.contains_key(prefix)) {
            Some(prefix) => {
                let later = (
                    std::ops::Bound::Excluded(prefix),
                    std::ops::Bound::Unbounded,
                );
                index.elements.range(later).next()
            }
            None => index.elements.first_key_value(),
        };
        next.map(|(prefix, _)| prefix.key()).ok_or(Errno::ENOENT)
    }

    fn len(&self) -> usize {
        self.index().elements.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;

    fn key(bits: u32, address: [u8; 4]) -> Vec<u8> {
        let mut key = bits.to_le_bytes().to_vec();
        key.extend(address);
        key
    }

    #[test]
    fn the_longest_prefix_wins() {
        let map = LpmTrie::new(MapDef::new("routes", MapType::LpmTrie, 8, 1, 3));
        let set = |bits, address, value: u8| {
            map.update(0, &key(bits, address), &[value], UpdateFlags::empty())
        };
        assert_eq!(set(8, [10, 9, 9, 9], 1), Ok(()));
        assert_eq!(set(20, [10, 1, 0x1f, 0], 2), Ok(()));
        assert_eq!(set(0, [0; 4], 3), Ok(()));
        let get = |address| {
            map.lookup(0, &key(32, address))
                .unwrap()
                .and_then(|e| map.slab.value(e))
        };
        assert_eq!(get([10, 1, 0x10, 1]), Some(vec![2]));
        assert_eq!(get([10, 1, 0x20, 1]), Some(vec![1]));
        assert_eq!(get([11, 0, 0, 0]), Some(vec![3]));
        assert_eq!(set(9, [10, 0, 0, 0], 4), Err(Errno::ENOSPC));
        assert_eq!(set(33, [10, 0, 0, 0], 4), Err(Errno::EINVAL));
        assert_eq!(map.delete(&key(8, [10, 0, 0, 0])), Ok(()));
        assert_eq!(map.delete(&key(8, [10, 0, 0, 0])), Err(Errno::ENOENT));
        assert_eq!(get([10, 1, 0x20, 1]), Some(vec![3]));
        assert_eq!(map.next_key(None), Ok(key(0, [0; 4])));
        assert_eq!(
            map.next_key(Some(&key(0, [0; 4]))),
            Ok(key(20, [10, 1, 0x10, 0]))
        );
    }
}
