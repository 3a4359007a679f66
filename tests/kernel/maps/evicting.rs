//! Maps that evict elements. Which element is evicted may differ: the kernel's lists are
//! approximations. Both must have room for every new key, never more keys than max_entries, and
//! for each remaining key the value written last.

use std::collections::BTreeMap;

use bpflab::kernel::KernelMap;
use bpflab::program::MapDef;
use bpflab::spec::{MapFlags, MapType, UpdateFlags};
use bpflab::util::Errno;
use bpflab::vm::maps::Map;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::pair::{Pair, cpus, walk};

/// The operations on either map.
trait Evicting {
    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno>;
    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno>;
    fn remove(&self, key: &[u8]) -> Result<(), Errno>;
    fn next(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno>;
}

impl Evicting for &dyn Map {
    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        (**self).read(key)
    }
    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        (**self).write(key, value, flags)
    }
    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        (**self).remove(key)
    }
    fn next(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.next_key(key)
    }
}

impl Evicting for KernelMap<'_> {
    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.lookup(key, UpdateFlags::empty())
    }
    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.update(key, value, flags)
    }
    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        self.delete(key)
    }
    fn next(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.next_key(key)
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write(u32, u8, u64),
    Read(u32),
    Remove(u32),
    Walk,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..24u32;
    let flags = prop_oneof![8 => Just(0u64), 3 => 1..9u64];
    prop_oneof![
        8 => (key.clone(), any::<u8>(), flags).prop_map(|(key, fill, flags)| Op::Write(key, fill, flags)),
        3 => key.clone().prop_map(Op::Read),
        1 => key.prop_map(Op::Remove),
        1 => Just(Op::Walk),
    ]
}

/// Runs operations on a map; each result must fit what is known of the map.
///
/// The kernel allocates before it looks up the key, and may evict that very key: the update
/// flags then apply to a missing key (`htab_lru_map_update_elem`).
fn owes(
    map: &dyn Evicting,
    is_kernel: bool,
    size: usize,
    most: usize,
    ops: &[Op],
) -> Result<(), TestCaseError> {
    let mut written: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for op in ops {
        match op {
            Op::Write(key, fill, flags) => {
                let (key, value) = (key.to_le_bytes(), vec![*fill; size]);
                let there = map.read(&key).is_ok();
                let expected = match (flags, there) {
                    (3.., _) => Err(Errno::EINVAL),
                    (1, true) => Err(Errno::EEXIST),
                    (2, false) => Err(Errno::ENOENT),
                    _ => Ok(()),
                };
                let flags = UpdateFlags::from_bits_retain(*flags);
                let done = map.write(&key, &value, flags);
                let evicted = match flags {
                    UpdateFlags::NOEXIST => Ok(()),
                    UpdateFlags::EXIST => Err(Errno::ENOENT),
                    _ => expected,
                };
                if !(is_kernel && there && done == evicted) {
                    prop_assert_eq!(done, expected);
                }
                if done.is_ok() {
                    prop_assert_eq!(map.read(&key), Ok(value.clone()), "the newest stays");
                    written.insert(key.to_vec(), value);
                }
            }
            Op::Read(key) => {
                let key = key.to_le_bytes();
                match map.read(&key) {
                    Ok(value) => prop_assert_eq!(Some(&value), written.get(&key[..])),
                    Err(errno) => prop_assert_eq!(errno, Errno::ENOENT),
                }
            }
            Op::Remove(key) => {
                let key = key.to_le_bytes();
                let there = map.read(&key).is_ok();
                let expected = there.then_some(()).ok_or(Errno::ENOENT);
                prop_assert_eq!(map.remove(&key), expected);
                written.remove(&key[..]);
            }
            Op::Walk => {
                let keys = walk(|key| map.next(key)).unwrap();
                prop_assert!(keys.len() <= most, "{} of {}", keys.len(), most);
                for key in keys {
                    prop_assert!(written.contains_key(&key));
                    prop_assert_eq!(map.read(&key).ok(), written.get(&key).cloned());
                }
            }
        }
    }
    Ok(())
}

#[test]
fn both_keep_what_they_owe() {
    let Some(cpus) = cpus() else { return };
    for map_type in [MapType::LruHash, MapType::LruPercpuHash] {
        for (flags, entries) in [
            (MapFlags::empty(), 8),
            (MapFlags::NO_COMMON_LRU, 8),
            (MapFlags::NO_COMMON_LRU, 7),
        ] {
            let mut def = MapDef::new("m", map_type, 4, 8, entries);
            def.flags = flags;
            let most = match flags.contains(MapFlags::NO_COMMON_LRU) {
                true => entries.next_multiple_of(cpus),
                false => entries,
            };
            let mut runner = TestRunner::new(ProptestConfig {
                cases: 40,
                failure_persistence: None,
                ..ProptestConfig::default()
            });
            let result = runner.run(&vec(op(), 0..120), |ops| {
                let Some(pair) = Pair::new(&def, None) else {
                    return Ok(());
                };
                let size = pair.ours.user_value_size();
                owes(&&*pair.ours, false, size, most as usize, &ops)?;
                owes(&pair.kernel(), true, size, most as usize, &ops)
            });
            result.unwrap_or_else(|error| panic!("{map_type} {flags:?}: {error}"));
        }
    }
}
