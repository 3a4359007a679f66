//! Longest-prefix-match tries (`kernel/bpf/lpm_trie.c`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::super::memory::Slab;
use super::Map;
use super::base::{Base, Mode};
use super::lock::{Guard, Lock};
use super::values::Values;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_LPM_TRIE`. A key is a `u32` prefix length in bits, followed by the bytes with
/// the prefix, most significant bit first.
#[derive(Debug)]
pub(super) struct Lpm {
    base: Base,
    values: Values,
    trie: Lock<Trie>,
}

#[derive(Debug, Default)]
struct Trie {
    /// The element of each prefix, in the kernel's order of keys.
    slots: BTreeMap<Prefix, u32>,
    free: VecDeque<u32>,
    fresh: u32,
}

/// The first `len` bits of `bits`; the bits after them are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prefix {
    len: usize,
    bits: Vec<u8>,
}

impl Prefix {
    /// Parses a key; `None` if its length exceeds its bytes.
    fn of(key: &[u8]) -> Option<Self> {
        let (len, bits) = key.split_first_chunk()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        (len <= bits.len() * 8).then(|| Self::cut(len, bits))
    }

    fn cut(len: usize, bits: &[u8]) -> Self {
        let masked = bits.iter().enumerate().map(|(at, byte)| {
            let kept = len.saturating_sub(at * 8).min(8);
            byte & !(0xff_u16 >> kept).to_le_bytes()[0]
        });
        Self {
            len,
            bits: masked.collect(),
        }
    }

    /// The prefix without its last bit; `None` if it is empty.
    fn shorter(mut self) -> Option<Self> {
        self.len = self.len.checked_sub(1)?;
        if let Some(byte) = self.bits.get_mut(self.len / 8) {
            *byte &= !(0x80 >> (self.len % 8));
        }
        Some(self)
    }
}

/// The number of leading bits that two equally long byte strings share.
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut pairs = a.iter().zip(b).enumerate();
    match pairs.find(|(_, (a, b))| a != b) {
        Some((at, (a, b))) => at * 8 + (a ^ b).leading_zeros() as usize,
        None => a.len().min(b.len()) * 8,
    }
}

/// The kernel's order of keys: by bits, with a prefix after all longer ones that begin with it.
impl Ord for Prefix {
    fn cmp(&self, other: &Self) -> Ordering {
        let shorter = self.len.min(other.len);
        if common(&self.bits, &other.bits) >= shorter {
            other.len.cmp(&self.len)
        } else {
            self.bits.cmp(&other.bits)
        }
    }
}

impl PartialOrd for Prefix {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Lpm {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            values: Values::keyed(def.key_size, def.value_size, slots(def), None),
            trie: Lock::new(Trie::default()),
        }
    }

    fn lock(&self) -> Guard<'_, Trie> {
        self.trie.lock()
    }
}

/// Number of elements: `max_entries`, and one for replacing a value.
pub(super) const fn slots(def: &MapDef) -> usize {
    def.max_entries as usize + 1
}

impl Trie {
    /// A free element; one that was never used, if there is any.
    fn take(&mut self, count: usize) -> Option<u32> {
        if (self.fresh as usize) < count {
            self.fresh += 1;
            Some(self.fresh - 1)
        } else {
            self.free.pop_front()
        }
    }
}

impl Map for Lpm {
    fn base(&self) -> &Base {
        &self.base
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(self.values.slab())
    }

    fn lookup(&self, _cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let Some(wanted) = Prefix::of(key) else {
            return Ok(None);
        };
        let trie = self.lock();
        let mut probe = Some(wanted);
        while let Some(prefix) = probe {
            if let Some(slot) = trie.slots.get(&prefix) {
                return Ok(Some(*slot as usize));
            }
            probe = prefix.shorter();
        }
        Ok(None)
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        let prefix = Prefix::of(key).ok_or(Errno::EINVAL)?;
        self.base.check_value(value)?;
        let slab = self.values.slab();
        let mut trie = self.lock();
        let old = trie.slots.get(&prefix).copied();
        mode.check(old.is_some())?;
        if old.is_none() && trie.slots.len() >= self.base.def().max_entries as usize {
            return Err(Errno::ENOSPC);
        }
        let slot = trie.take(self.values.count()).ok_or(Errno::ENOMEM)?;
        slab.revive(slot as usize, key).ok_or(Errno::EINVAL)?;
        self.values.set(cpu, slot as usize, value)?;
        trie.slots.insert(prefix, slot);
        if let Some(old) = old {
            slab.kill(old as usize);
            trie.free.push_back(old);
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let prefix = Prefix::of(key).ok_or(Errno::EINVAL)?;
        let mut trie = self.lock();
        let slot = trie.slots.remove(&prefix).ok_or(Errno::ENOENT)?;
        self.values.slab().kill(slot as usize);
        trie.free.push_back(slot);
        Ok(())
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let slot = self.lookup(0, key)?.ok_or(Errno::ENOENT)?;
        self.values.read(slot)
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.update(0, key, value, flags)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let trie = self.lock();
        let known = key
            .and_then(Prefix::of)
            .filter(|prefix| trie.slots.contains_key(prefix));
        let from = known.map_or(Bound::Unbounded, Bound::Excluded);
        let (_, slot) = trie
            .slots
            .range((from, Bound::Unbounded))
            .next()
            .ok_or(Errno::ENOENT)?;
        // The key as it was written, including the bits after its prefix.
        self.values.slab().key(*slot as usize).ok_or(Errno::ENOENT)
    }
}
