//! Stack traces by hash (`kernel/bpf/stackmap.c`).

use std::collections::BTreeMap;

use super::base::Base;
use super::lock::{Guard, Lock};
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, StackFlags, UpdateFlags, limits};
use crate::util::Errno;

/// `BPF_MAP_TYPE_STACK_TRACE`. A stack's id is the number of its bucket; there are `max_entries`
/// buckets, rounded up to a power of two, with one stack each. Hash and ids are the kernel's.
#[derive(Debug)]
pub struct StackTraces {
    base: Base,
    /// Number of buckets minus 1, all ones.
    mask: u32,
    buckets: Lock<Buckets>,
}

/// The used buckets.
type Buckets = BTreeMap<u32, Stack>;

#[derive(Debug, PartialEq, Eq)]
struct Stack {
    hash: u32,
    /// Addresses, or build id records; the rest of the value is zero.
    data: Vec<u8>,
}

/// `BPF_STACK_BUILD_ID_IP`: no build id is known, the record has the address.
const BUILD_ID_IP: u32 = 2;

impl StackTraces {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            mask: def
                .max_entries
                .checked_next_power_of_two()
                .map_or(u32::MAX, |n| n - 1),
            buckets: Lock::default(),
        }
    }

    fn lock(&self) -> Guard<'_, Buckets> {
        self.buckets.lock()
    }

    /// Whether values have build ids and offsets instead of addresses.
    #[must_use]
    pub const fn has_build_ids(&self) -> bool {
        self.base.def().flags.contains(MapFlags::STACK_BUILD_ID)
    }

    /// The maximum number of frames.
    #[must_use]
    pub const fn max_depth(&self) -> usize {
        let frame = if self.has_build_ids() {
            limits::STACK_BUILD_ID_SIZE
        } else {
            8
        };
        self.base.def().value_size as usize / frame
    }

    /// Returns the id of a stack, and inserts the stack if it is missing (`__bpf_get_stackid`).
    /// `addresses` is without skipped frames; frames past [`max_depth`](Self::max_depth) are
    /// dropped. In a map with build ids, each frame becomes a record without a build id.
    ///
    /// Only the flags `FAST_STACK_CMP` and `REUSE_STACKID` are used.
    ///
    /// # Errors
    /// `EEXIST` if another stack has the bucket, `ENOMEM` if there are `max_entries` stacks,
    /// `EFAULT` for an empty stack.
    pub fn insert(&self, addresses: &[u64], flags: StackFlags) -> Result<u32, Errno> {
        if !self.has_build_ids() {
            let (addresses, data) = self.clip(addresses, |ip| ip.to_le_bytes().to_vec());
            return self.enter(addresses, data, flags);
        }
        let (addresses, data) = self.clip(addresses, |ip| {
            let mut record = BUILD_ID_IP.to_le_bytes().to_vec();
            record.resize(limits::STACK_BUILD_ID_SIZE - 8, 0);
            record.extend(ip.to_le_bytes());
            record
        });
        self.enter(addresses, data, flags)
    }

    /// Like [`insert`](Self::insert) for a map with build ids; `records` has the
    /// `struct bpf_stack_build_id` of each frame.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert); `EINVAL` if the map stores addresses, or there are fewer
    /// records than addresses.
    pub fn insert_build_ids(
        &self,
        addresses: &[u64],
        records: &[[u8; limits::STACK_BUILD_ID_SIZE]],
        flags: StackFlags,
    ) -> Result<u32, Errno> {
        if !self.has_build_ids() || records.len() < addresses.len() {
            return Err(Errno::EINVAL);
        }
        let mut records = records.iter();
        let (addresses, data) = self.clip(addresses, |_| {
            records
                .next()
                .map_or_else(Vec::new, |record| record.to_vec())
        });
        self.enter(addresses, data, flags)
    }

    /// Limits a stack to the maximum depth, and makes its stored data.
    fn clip<'a>(
        &self,
        addresses: &'a [u64],
        keep: impl FnMut(&u64) -> Vec<u8>,
    ) -> (&'a [u64], Vec<u8>) {
        let depth = addresses.len().min(self.max_depth());
        let addresses = addresses.get(..depth).unwrap_or_default();
        (addresses, addresses.iter().flat_map(keep).collect())
    }

    fn enter(&self, addresses: &[u64], data: Vec<u8>, flags: StackFlags) -> Result<u32, Errno> {
        if addresses.is_empty() {
            return Err(Errno::EFAULT);
        }
        let hash = jhash2(addresses);
        let id = hash & self.mask;
        let mut buckets = self.lock();
        let used = buckets.len();
        // The kernel allocates the new stack before it frees the old one; with build ids, even
        // before it compares the two.
        let is_full = used >= self.base.def().max_entries as usize;
        if let Some(old) = buckets.get(&id) {
            if old.hash == hash && flags.contains(StackFlags::FAST_STACK_CMP) {
                return Ok(id);
            }
            if is_full && self.has_build_ids() {
                return Err(Errno::ENOMEM);
            }
            if old.hash == hash && old.data == data {
                return Ok(id);
            }
            if !flags.contains(StackFlags::REUSE_STACKID) {
                return Err(Errno::EEXIST);
            }
        }
        if is_full {
            return Err(Errno::ENOMEM);
        }
        buckets.insert(id, Stack { hash, data });
        Ok(id)
    }

    /// A value as user space reads it.
    fn value(&self, stack: &Stack) -> Vec<u8> {
        let mut value = stack.data.clone();
        value.resize(self.base.def().value_size as usize, 0);
        value
    }
}

impl Map for StackTraces {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::StackTraces(self)
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = Base::index(key)?;
        let buckets = self.lock();
        let stack = buckets.get(&id).ok_or(Errno::ENOENT)?;
        Ok(self.value(stack))
    }

    fn sys_lookup_and_delete(&self, key: &[u8], _lock: bool) -> Result<Vec<u8>, Errno> {
        let id = Base::index(key)?;
        let stack = self.lock().remove(&id).ok_or(Errno::ENOENT)?;
        Ok(self.value(&stack))
    }

    fn sys_update(&self, _key: &[u8], _value: &[u8], _flags: UpdateFlags) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        let id = Base::index(key)?;
        if id > self.mask {
            return Err(Errno::E2BIG);
        }
        self.lock().remove(&id).map(drop).ok_or(Errno::ENOENT)
    }

    /// The next used bucket.
    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let buckets = self.lock();
        let last = key.map(Base::index).transpose()?;
        let from = match last.filter(|id| buckets.contains_key(id)) {
            Some(id) => id.checked_add(1).ok_or(Errno::ENOENT)?,
            None => 0,
        };
        let (id, _) = buckets.range(from..).next().ok_or(Errno::ENOENT)?;
        Ok(id.to_le_bytes().to_vec())
    }
}

/// Bob Jenkins' hash of the addresses as 32-bit words, with seed 0 (`jhash2`,
/// `include/linux/jhash.h`).
fn jhash2(addresses: &[u64]) -> u32 {
    const INITIAL: u32 = 0xdead_beef;
    let words: Vec<u32> = addresses
        .iter()
        .flat_map(|ip| {
            let [a, b, c, d, e, f, g, h] = ip.to_le_bytes();
            [
                u32::from_le_bytes([a, b, c, d]),
                u32::from_le_bytes([e, f, g, h]),
            ]
        })
        .collect();
    let length = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let start = INITIAL.wrapping_add(length.wrapping_mul(4));
    let mut state = [start; 3];
    let mut rest = words.as_slice();
    // The last one to three words are mixed differently.
    while let [a, b, c, tail @ ..] = rest
        && !tail.is_empty()
    {
        state = mix(add(state, [*a, *b, *c]));
        rest = tail;
    }
    let last = |n: usize| rest.get(n).copied().unwrap_or_default();
    if rest.is_empty() {
        return start;
    }
    finish(add(state, [last(0), last(1), last(2)]))
}

fn add(state: [u32; 3], words: [u32; 3]) -> [u32; 3] {
    let [a, b, c] = state;
    let [x, y, z] = words;
    [a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z)]
}

/// `__jhash_mix`.
fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for (first, second) in [(4, 6), (8, 16), (19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        // Rotate the roles.
        (a, b, c) = (c, a, b);
    }
    [a, b, c]
}

/// `__jhash_final`.
fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    for (first, second, third) in [(14, 11, 25), (16, 4, 14), (24, 0, 0)] {
        c = (c ^ b).wrapping_sub(b.rotate_left(first));
        if second == 0 {
            break;
        }
        a = (a ^ c).wrapping_sub(c.rotate_left(second));
        b = (b ^ a).wrapping_sub(a.rotate_left(third));
    }
    c
}
