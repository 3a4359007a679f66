//! Bloom filters (`kernel/bpf/bloom_filter.c`).

use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHasher;

use super::super::memory::zeroed;
use super::base::Base;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_BLOOM_FILTER`, with as many bits as the kernel's. The kernel hashes with a
/// random seed, so false positives differ.
#[derive(Debug)]
pub struct Bloom {
    base: Base,
    bits: Box<[AtomicU64]>,
    /// Number of bits minus 1, all ones.
    mask: u32,
    hashes: u32,
}

/// Number of hash functions if `map_extra` is 0.
const DEFAULT_HASHES: u32 = 5;

/// Number of hash functions of a filter.
fn hashes(def: &MapDef) -> u32 {
    match u32::try_from(def.extra & 0xf) {
        Ok(0) | Err(_) => DEFAULT_HASHES,
        Ok(hashes) => hashes,
    }
}

/// Number of bits minus 1: `max_entries * hashes / ln 2`, with 7/5 for `1 / ln 2`,
/// rounded up to a power of two, at least a machine word.
pub(super) fn mask(def: &MapDef) -> u32 {
    let bits = def
        .max_entries
        .checked_mul(hashes(def))
        .map(|bits| bits / 5);
    let bits = bits
        .and_then(|bits| bits.checked_mul(7))
        .filter(|bits| *bits <= 1 << 31);
    bits.map_or(u32::MAX, |bits| bits.next_power_of_two().max(64) - 1)
}

impl Bloom {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let mask = mask(def);
        Self {
            base: Base::new(def, cpus),
            bits: zeroed((mask as usize + 1) / 64),
            mask,
            hashes: hashes(def),
        }
    }

    /// Word and bit for each hash of a value.
    fn bits_of(&self, value: &[u8]) -> impl Iterator<Item = (Option<&AtomicU64>, u64)> {
        (0..self.hashes).map(move |seed| {
            let mut hasher = FxHasher::default();
            hasher.write_u32(seed);
            hasher.write(value);
            let hash = hasher.finish();
            let bit = (hash ^ hash >> 32) & u64::from(self.mask);
            let word = usize::try_from(bit / 64).unwrap_or_default();
            (self.bits.get(word), 1 << (bit % 64))
        })
    }

    /// Adds a value.
    ///
    /// # Errors
    /// `EINVAL` for any flag.
    pub fn push(&self, value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        if !flags.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.base.check_value(value)?;
        for (word, bit) in self.bits_of(value) {
            word.map(|word| word.fetch_or(bit, Ordering::SeqCst));
        }
        Ok(())
    }

    /// Whether a value may have been added.
    #[must_use]
    pub fn contains(&self, value: &[u8]) -> bool {
        self.bits_of(value)
            .all(|(word, bit)| word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0))
    }
}

impl Map for Bloom {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Bloom(self)
    }

    /// The system call passes the value in place of a key: use [`contains`](Self::contains).
    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_update(&self, _key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.push(value, flags)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn sys_next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
