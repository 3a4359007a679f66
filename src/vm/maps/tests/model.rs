//! Random operations on arrays and hashes of every kind, LPM tries, queues and stacks, compared
//! with a model that is as simple as possible.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Kind, Map, create as make};
use super::{ANY, keys, map, seen};
use crate::program::MapDef;
use crate::spec::{KeyRule, MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

const CPUS: usize = 2;
const VALUE: usize = 5;
const VALUE_SIZE: u32 = 5;
const ENTRIES: usize = 4;
const MAX_ENTRIES: u32 = 4;

#[derive(Debug, Clone)]
enum Op {
    Lookup {
        cpu: u32,
        key: Vec<u8>,
    },
    Update {
        cpu: u32,
        key: Vec<u8>,
        value: Vec<u8>,
        flags: u64,
    },
    Delete {
        key: Vec<u8>,
    },
    Read {
        key: Vec<u8>,
    },
    Write {
        key: Vec<u8>,
        fill: u8,
        flags: u64,
    },
    Remove {
        key: Vec<u8>,
    },
    Take {
        key: Vec<u8>,
    },
    Keys,
    /// All elements, with at least this many per batch.
    Batches {
        count: u32,
    },
}

/// More keys than the map has room for.
fn key() -> impl Strategy<Value = Vec<u8>> + Clone {
    (0..6u32).prop_map(|key| key.to_le_bytes().to_vec())
}

fn op(key: impl Strategy<Value = Vec<u8>> + Clone) -> impl Strategy<Value = Op> {
    let (cpu, flags) = (0..2u32, prop_oneof![4 => Just(0u64), 3 => 1..6u64]);
    let value = vec(any::<u8>(), VALUE);
    prop_oneof![
        3 => (cpu.clone(), key.clone()).prop_map(|(cpu, key)| Op::Lookup { cpu, key }),
        5 => (cpu, key.clone(), value, flags.clone())
            .prop_map(|(cpu, key, value, flags)| Op::Update { cpu, key, value, flags }),
        2 => key.clone().prop_map(|key| Op::Delete { key }),
        2 => key.clone().prop_map(|key| Op::Read { key }),
        2 => (key.clone(), any::<u8>(), flags)
            .prop_map(|(key, fill, flags)| Op::Write { key, fill, flags }),
        1 => key.clone().prop_map(|key| Op::Remove { key }),
        1 => key.prop_map(|key| Op::Take { key }),
        1 => Just(Op::Keys),
        1 => (1..5u32).prop_map(|count| Op::Batches { count }),
    ]
}

/// The behaviour of a map as seen from outside.
trait Model {
    fn lookup(&mut self, cpu: usize, key: &[u8]) -> Option<Vec<u8>>;
    /// `values` has one value for each CPU; `cpu` is the one that the program runs on.
    fn update(
        &mut self,
        cpu: Option<usize>,
        key: &[u8],
        values: Vec<Vec<u8>>,
        flags: u64,
    ) -> Result<(), Errno>;
    fn delete(&mut self, key: &[u8]) -> Result<(), Errno>;
    fn read(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, Errno>;
    fn keys(&self) -> Vec<Vec<u8>>;
}

/// Runs operations on map and model; they must agree at each step.
fn agree(map: &dyn Map, model: &mut dyn Model, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let per_cpu = map.def().map_type.info().per_cpu;
    let user = |values: Vec<Vec<u8>>| match per_cpu {
        true => values
            .into_iter()
            .flat_map(|v| [v, vec![0; 3]].concat())
            .collect(),
        false => values[0].clone(),
    };
    for op in ops {
        match op {
            Op::Lookup { cpu, key } => {
                prop_assert_eq!(seen(map, cpu, &key), model.lookup(cpu as usize, &key));
            }
            Op::Update {
                cpu,
                key,
                value,
                flags,
            } => {
                let bits = UpdateFlags::from_bits_retain(flags);
                let cpu_index = cpu as usize;
                prop_assert_eq!(
                    map.update(cpu, &key, &value, bits),
                    model.update(Some(cpu_index), &key, vec![value; CPUS], flags)
                );
            }
            Op::Delete { key } => prop_assert_eq!(map.delete(&key), model.delete(&key)),
            Op::Read { key } => prop_assert_eq!(map.read(&key), model.read(&key).map(user)),
            Op::Write { key, fill, flags } => {
                let values: Vec<_> = (0..2u8).map(|cpu| vec![fill ^ cpu; VALUE]).collect();
                let bits = UpdateFlags::from_bits_retain(flags);
                prop_assert_eq!(
                    map.write(&key, &user(values.clone()), bits),
                    model.update(None, &key, values, flags)
                );
            }
            Op::Remove { key } => prop_assert_eq!(map.remove(&key), model.delete(&key)),
            Op::Take { key } => {
                let takes = map.def().map_type.info().key == KeyRule::Any;
                let expected = match model.read(&key) {
                    _ if !takes => Err(Errno::ENOTSUPP),
                    Err(errno) => Err(errno),
                    Ok(values) => {
                        model.delete(&key).unwrap();
                        Ok(user(values))
                    }
                };
                prop_assert_eq!(map.take(&key, ANY), expected);
            }
            Op::Keys => prop_assert_eq!(keys(map), model.keys()),
            Op::Batches { count } => {
                let mut expected: Vec<_> = model
                    .keys()
                    .into_iter()
                    .map(|key| (key.clone(), user(model.read(&key).unwrap())))
                    .collect();
                expected.sort();
                prop_assert_eq!(batches(map, count), expected);
            }
        }
    }
    Ok(())
}

/// All elements, batch after batch. A bucket that is too large for a batch is requested again
/// with a larger one.
fn batches(map: &dyn Map, mut count: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let batch = map.read_batch(from.as_deref(), count, ANY);
        let keys = batch.keys.chunks(map.def().key_size as usize);
        let values = batch.values.chunks(map.user_value_size());
        assert!(keys.len() == values.len() && keys.len() <= count as usize);
        found.extend(
            keys.zip(values)
                .map(|(key, value)| (key.to_vec(), value.to_vec())),
        );
        from = Some(batch.next);
        match batch.result {
            Ok(()) => {}
            Err(Errno::ENOSPC) => count += 1,
            Err(errno) => {
                assert_eq!(errno, Errno::ENOENT);
                found.sort();
                return found;
            }
        }
    }
}

fn check_flags(flags: u64, exists: bool) -> Result<(), Errno> {
    match flags {
        3.. => Err(Errno::EINVAL),
        1 if exists => Err(Errno::EEXIST),
        2 if !exists => Err(Errno::ENOENT),
        _ => Ok(()),
    }
}

/// Arrays: all elements exist.
struct ArrayModel {
    per_cpu: bool,
    values: Vec<Vec<Vec<u8>>>,
}

impl ArrayModel {
    fn index(&self, key: &[u8]) -> Option<usize> {
        let index = u32::from_le_bytes(key.try_into().unwrap()) as usize;
        (index < self.values.len()).then_some(index)
    }
}

impl Model for ArrayModel {
    fn lookup(&mut self, cpu: usize, key: &[u8]) -> Option<Vec<u8>> {
        let cpu = if self.per_cpu { cpu } else { 0 };
        Some(self.values[self.index(key)?][cpu].clone())
    }

    fn update(
        &mut self,
        cpu: Option<usize>,
        key: &[u8],
        values: Vec<Vec<u8>>,
        flags: u64,
    ) -> Result<(), Errno> {
        // A program's missing lock is reported last, user space's first.
        let other = if cpu.is_some() { flags & !4 } else { flags };
        if other > 2 {
            return Err(Errno::EINVAL);
        }
        let index = self.index(key).ok_or(Errno::E2BIG)?;
        check_flags(other, true)?;
        if other != flags {
            return Err(Errno::EINVAL);
        }
        match cpu.filter(|_| self.per_cpu) {
            Some(cpu) => self.values[index][cpu] = values[cpu].clone(),
            None => self.values[index] = values,
        }
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn read(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        Ok(self.values[self.index(key).ok_or(Errno::ENOENT)?].clone())
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        (0..MAX_ENTRIES)
            .map(|key| key.to_le_bytes().to_vec())
            .collect()
    }
}

/// Hashes: keys in the order of insertion and, for LRU maps, of last use.
#[derive(Default)]
struct HashModel {
    per_cpu: bool,
    evicts: bool,
    /// Each CPU evicts among the keys that it inserted.
    lists: bool,
    entries: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    used: Vec<Vec<u8>>,
    /// Which CPU inserted a key.
    owners: Vec<(Vec<u8>, usize)>,
}

impl HashModel {
    fn at(&self, key: &[u8]) -> Option<usize> {
        self.entries.iter().position(|(at, _)| at == key)
    }

    fn use_key(&mut self, key: &[u8]) {
        self.used.retain(|at| at != key);
        self.used.push(key.to_vec());
    }

    fn owner(&self, key: &[u8]) -> Option<usize> {
        let mut owners = self.owners.iter();
        owners.find(|(at, _)| at == key).map(|(_, cpu)| *cpu)
    }

    /// Makes room for a key of a CPU.
    fn make_room(&mut self, cpu: usize, key: &[u8]) -> Result<(), Errno> {
        let full = match self.lists {
            true if self.owner(key) == Some(cpu) => false,
            true => self.owners.iter().filter(|(_, of)| *of == cpu).count() == ENTRIES / CPUS,
            false => self.at(key).is_none() && self.entries.len() == ENTRIES,
        };
        if !full {
            return Ok(());
        }
        let is_mine = |at: &&Vec<u8>| !self.lists || self.owner(at) == Some(cpu);
        let oldest = self.used.iter().find(is_mine).filter(|_| self.evicts);
        let oldest = oldest.cloned().ok_or(Errno::E2BIG)?;
        self.delete(&oldest)
    }
}

impl Model for HashModel {
    fn lookup(&mut self, cpu: usize, key: &[u8]) -> Option<Vec<u8>> {
        let at = self.at(key)?;
        self.use_key(key);
        Some(self.entries[at].1[if self.per_cpu { cpu } else { 0 }].clone())
    }

    fn update(
        &mut self,
        cpu: Option<usize>,
        key: &[u8],
        values: Vec<Vec<u8>>,
        flags: u64,
    ) -> Result<(), Errno> {
        check_flags(flags, self.at(key).is_some())?;
        let (here, stays) = (cpu.unwrap_or(0), self.per_cpu && self.at(key).is_some());
        if !stays {
            self.make_room(here, key)?;
            self.owners.retain(|(at, _)| at != key);
            self.owners.push((key.to_vec(), here));
        }
        let at = self.at(key);
        self.use_key(key);
        match (at, cpu.filter(|_| self.per_cpu)) {
            (Some(at), Some(cpu)) => self.entries[at].1[cpu] = values[cpu].clone(),
            (Some(at), None) => self.entries[at].1 = values,
            (None, Some(cpu)) => {
                let mut all = vec![vec![0; VALUE]; CPUS];
                all[cpu] = values[cpu].clone();
                self.entries.push((key.to_vec(), all));
            }
            (None, None) => self.entries.push((key.to_vec(), values)),
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Errno> {
        let at = self.at(key).ok_or(Errno::ENOENT)?;
        self.entries.remove(at);
        self.used.retain(|at| at != key);
        self.owners.retain(|(at, _)| at != key);
        Ok(())
    }

    fn read(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        Ok(self.entries[self.at(key).ok_or(Errno::ENOENT)?].1.clone())
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.entries.iter().map(|(key, _)| key.clone()).collect()
    }
}

/// Tries: bits as text, so that string prefixes are prefixes.
#[derive(Default)]
struct LpmModel {
    entries: Vec<(String, Vec<u8>, Vec<u8>)>,
}

fn bits(key: &[u8]) -> Option<String> {
    let all: String = key[4..].iter().map(|byte| format!("{byte:08b}")).collect();
    let len = u32::from_le_bytes(key[..4].try_into().unwrap()) as usize;
    all.get(..len).map(str::to_owned)
}

impl Model for LpmModel {
    fn lookup(&mut self, _cpu: usize, key: &[u8]) -> Option<Vec<u8>> {
        self.read(key).ok().map(|mut values| values.remove(0))
    }

    fn update(
        &mut self,
        _cpu: Option<usize>,
        key: &[u8],
        values: Vec<Vec<u8>>,
        flags: u64,
    ) -> Result<(), Errno> {
        if flags > 2 {
            return Err(Errno::EINVAL);
        }
        let prefix = bits(key).ok_or(Errno::EINVAL)?;
        let there = self.entries.iter().position(|(at, ..)| *at == prefix);
        check_flags(flags, there.is_some())?;
        if there.is_none() && self.entries.len() == ENTRIES {
            return Err(Errno::ENOSPC);
        }
        self.entries.retain(|(at, ..)| *at != prefix);
        self.entries.push((prefix, key.to_vec(), values[0].clone()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Errno> {
        let prefix = bits(key).ok_or(Errno::EINVAL)?;
        let there = self.entries.iter().position(|(at, ..)| *at == prefix);
        self.entries.remove(there.ok_or(Errno::ENOENT)?);
        Ok(())
    }

    fn read(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let wanted = bits(key).ok_or(Errno::ENOENT)?;
        let covering = self
            .entries
            .iter()
            .filter(|(at, ..)| wanted.starts_with(at.as_str()));
        let longest = covering.max_by_key(|(at, ..)| at.len());
        longest
            .map(|(_, _, value)| vec![value.clone()])
            .ok_or(Errno::ENOENT)
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        // A prefix comes after all longer ones: its end counts as the greatest bit.
        let mut sorted: Vec<_> = self.entries.iter().collect();
        sorted.sort_by_key(|(at, ..)| format!("{at}2"));
        sorted.into_iter().map(|(_, key, _)| key.clone()).collect()
    }
}

/// Prefixes of up to 9 bits (of 8), over few addresses.
fn prefix() -> impl Strategy<Value = Vec<u8>> + Clone {
    let len = prop_oneof![8 => 0..=8u32, 1 => Just(9u32)];
    (len, any::<u8>()).prop_map(|(len, bits)| {
        let mut key = len.to_le_bytes().to_vec();
        key.push(bits & 0b1011_0001);
        key
    })
}

#[derive(Debug, Clone)]
enum QueueOp {
    Push(Vec<u8>, u64),
    Pop,
    Peek,
}

fn queue_op() -> impl Strategy<Value = QueueOp> {
    let flags = prop_oneof![3 => Just(0u64), 2 => Just(2u64), 1 => 0..6u64];
    prop_oneof![
        4 => (vec(any::<u8>(), VALUE), flags).prop_map(|(value, flags)| QueueOp::Push(value, flags)),
        2 => Just(QueueOp::Pop),
        1 => Just(QueueOp::Peek),
    ]
}

fn queue_agrees(stack: bool, ops: Vec<QueueOp>) -> Result<(), TestCaseError> {
    let map_type = if stack {
        MapType::Stack
    } else {
        MapType::Queue
    };
    let map = map(map_type, 0, VALUE_SIZE, MAX_ENTRIES);
    let Kind::Queue(queue) = map.kind() else {
        return Err(TestCaseError::fail("no queue"));
    };
    let mut model = VecDeque::new();
    for op in ops {
        match op {
            QueueOp::Push(value, flags) => {
                let expected = match flags {
                    1 | 3.. => Err(Errno::EINVAL),
                    0 if model.len() == ENTRIES => Err(Errno::E2BIG),
                    _ => Ok(()),
                };
                let pushed = map.write(&[], &value, UpdateFlags::from_bits_retain(flags));
                prop_assert_eq!(pushed, expected);
                if expected.is_ok() {
                    if model.len() == ENTRIES {
                        model.pop_front();
                    }
                    model.push_back(value);
                }
            }
            QueueOp::Pop => {
                let next = if stack {
                    model.pop_back()
                } else {
                    model.pop_front()
                };
                prop_assert_eq!(queue.pop(), next.ok_or(Errno::ENOENT));
            }
            QueueOp::Peek => {
                let next = if stack { model.back() } else { model.front() };
                prop_assert_eq!(map.read(&[]), next.cloned().ok_or(Errno::ENOENT));
            }
        }
        let mut values: Vec<_> = model.iter().cloned().collect();
        if stack {
            values.reverse();
        }
        prop_assert_eq!(queue.values(), values);
    }
    Ok(())
}

proptest! {
    #[test]
    fn arrays(per_cpu: bool, ops in vec(op(key()), 0..60)) {
        let map_type = if per_cpu { MapType::PercpuArray } else { MapType::Array };
        let map = map(map_type, 4, VALUE_SIZE, MAX_ENTRIES);
        let values = vec![vec![vec![0; VALUE]; CPUS]; ENTRIES];
        agree(&*map, &mut ArrayModel { per_cpu, values }, ops)?;
    }

    #[test]
    fn hashes(per_cpu: bool, evicts: bool, ops in vec(op(key()), 0..80)) {
        let map_type = match (per_cpu, evicts) {
            (false, false) => MapType::Hash,
            (true, false) => MapType::PercpuHash,
            (false, true) => MapType::LruHash,
            (true, true) => MapType::LruPercpuHash,
        };
        let map = map(map_type, 4, VALUE_SIZE, MAX_ENTRIES);
        agree(&*map, &mut HashModel { per_cpu, evicts, ..HashModel::default() }, ops)?;
    }

    /// Each CPU evicts among its own keys.
    #[test]
    fn lists_for_each_cpu(per_cpu: bool, ops in vec(op(key()), 0..80)) {
        let map_type = if per_cpu { MapType::LruPercpuHash } else { MapType::LruHash };
        let mut def = MapDef::new("m", map_type, 4, VALUE_SIZE, MAX_ENTRIES);
        def.flags = MapFlags::NO_COMMON_LRU;
        let map = make(&def, 2).unwrap();
        let (evicts, lists) = (true, true);
        agree(&*map, &mut HashModel { per_cpu, evicts, lists, ..HashModel::default() }, ops)?;
    }

    #[test]
    fn tries(ops in vec(op(prefix()), 0..60)) {
        let map = map(MapType::LpmTrie, 5, VALUE_SIZE, MAX_ENTRIES);
        agree(&*map, &mut LpmModel::default(), ops)?;
    }

    #[test]
    fn queues(stack: bool, ops in vec(queue_op(), 0..60)) {
        queue_agrees(stack, ops)?;
    }
}
