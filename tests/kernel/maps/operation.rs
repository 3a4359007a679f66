//! Operations of user space and of programs on both maps.

use bpflab::kernel::KernelBatch;
use bpflab::spec::UpdateFlags;
use bpflab::util::Errno;
use bpflab::vm::maps::{Batch, Kind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::pair::{Pair, walk};
use super::side::Side;

type Outcome = Result<(), TestCaseError>;
/// A key and its value.
type Element = (Vec<u8>, Vec<u8>);

/// An operation. Keys have the map's size; values are filled with a byte.
#[derive(Debug, Clone)]
pub enum Op {
    /// By a program on a CPU.
    Lookup(u32, Vec<u8>),
    Update(u32, Vec<u8>, u8, u64),
    Delete(u32, Vec<u8>),
    Push(u32, u8, u64),
    Pop(u32),
    Peek(u32, u8),
    /// By user space.
    Read(Vec<u8>, u64),
    Write(Vec<u8>, u8, u64),
    Remove(Vec<u8>),
    Take(Vec<u8>, u64),
    Next(Option<Vec<u8>>),
    Walk,
    ReadBatch(u32, u64),
    TakeBatch(u32, u64),
    WriteBatch(Vec<Vec<u8>>, u8, u64),
    RemoveBatch(Vec<Vec<u8>>, u64),
}

fn flags() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![6 => Just(0u64), 4 => 1..9u64, 1 => Just(1 << 32)]
}

/// Operations on a map with these keys.
pub fn ops(keys: BoxedStrategy<Vec<u8>>, cpus: u32) -> impl Strategy<Value = Op> {
    let (cpu, byte, few) = (
        0..cpus,
        any::<u8>(),
        prop_oneof![4 => Just(0u64), 1 => 1..9u64],
    );
    let several = vec(keys.clone(), 0..4);
    prop_oneof![
        4 => (cpu.clone(), keys.clone()).prop_map(|(cpu, key)| Op::Lookup(cpu, key)),
        8 => (cpu.clone(), keys.clone(), byte, flags())
            .prop_map(|(cpu, key, fill, flags)| Op::Update(cpu, key, fill, flags)),
        3 => (cpu, keys.clone()).prop_map(|(cpu, key)| Op::Delete(cpu, key)),
        4 => (keys.clone(), few.clone()).prop_map(|(key, flags)| Op::Read(key, flags)),
        8 => (keys.clone(), byte, flags())
            .prop_map(|(key, fill, flags)| Op::Write(key, fill, flags)),
        3 => keys.clone().prop_map(Op::Remove),
        2 => (keys.clone(), few.clone()).prop_map(|(key, flags)| Op::Take(key, flags)),
        2 => proptest::option::of(keys).prop_map(Op::Next),
        2 => Just(Op::Walk),
        2 => (0..40u32, few.clone()).prop_map(|(count, flags)| Op::ReadBatch(count, flags)),
        1 => (0..40u32, few.clone()).prop_map(|(count, flags)| Op::TakeBatch(count, flags)),
        2 => (several.clone(), byte, flags())
            .prop_map(|(keys, fill, flags)| Op::WriteBatch(keys, fill, flags)),
        1 => (several, few).prop_map(|(keys, flags)| Op::RemoveBatch(keys, flags)),
    ]
}

/// Operations on a map without keys.
pub fn keyless(cpus: u32) -> impl Strategy<Value = Op> {
    let (cpu, byte) = (0..cpus, 0..24u8);
    let flags = prop_oneof![5 => Just(0u64), 3 => Just(2u64), 1 => 1..9u64];
    prop_oneof![
        6 => (cpu.clone(), byte.clone(), flags.clone())
            .prop_map(|(cpu, fill, flags)| Op::Push(cpu, fill, flags)),
        3 => cpu.clone().prop_map(Op::Pop),
        2 => (cpu, byte.clone()).prop_map(|(cpu, fill)| Op::Peek(cpu, fill)),
        2 => Just(Op::Read(Vec::new(), 0)),
        6 => (byte, flags.clone()).prop_map(|(fill, flags)| Op::Write(Vec::new(), fill, flags)),
        1 => Just(Op::Remove(Vec::new())),
        3 => flags.prop_map(|flags| Op::Take(Vec::new(), flags)),
        1 => Just(Op::Next(None)),
        1 => Just(Op::ReadBatch(3, 0)),
    ]
}

/// How closely two maps agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Iterations give the same keys in the same order.
    Same,
    /// Iterations give the same keys in any order.
    Any,
}

const fn bits(flags: u64) -> UpdateFlags {
    UpdateFlags::from_bits_retain(flags)
}

impl Pair {
    fn value(&self, fill: u8, user: bool) -> Vec<u8> {
        let size = match user {
            true => self.ours.user_value_size(),
            false => self.ours.def().value_size as usize,
        };
        // CPUs' values differ, and the padding after them is not compared.
        (0u8..=255)
            .cycle()
            .take(size)
            .map(|at| fill ^ (at / 8))
            .collect()
    }

    /// Zeroes the padding after per-CPU values whose size is not a multiple of 8.
    fn without_gaps(&self, mut value: Vec<u8>) -> Vec<u8> {
        let size = self.ours.def().value_size as usize;
        if self.ours.def().map_type.info().per_cpu {
            for each in value.chunks_mut(size.next_multiple_of(8)) {
                each.iter_mut().skip(size).for_each(|byte| *byte = 0);
            }
        }
        value
    }

    /// Runs the operation on both maps and compares the results.
    pub fn agree(&self, op: &Op, order: Order) -> Outcome {
        let (ours, theirs) = (&self.ours, self.kernel());
        let call = |helper, cpu, flags, key: &[u8], value: &[u8]| {
            self.side
                .call(self.loaded(), helper, cpu, flags, key, value)
        };
        match op {
            Op::Lookup(cpu, key) => {
                let element = ours.lookup(*cpu, key).unwrap();
                let value = element.and_then(|at| ours.slab().unwrap().value(at));
                let (found, there) = call("map_lookup_elem", *cpu, 0, key, &[]);
                prop_assert_eq!(value, (found != 0).then_some(there));
            }
            Op::Update(cpu, key, fill, flags) => {
                let value = self.value(*fill, false);
                let updated = ours.update(*cpu, key, &value, bits(*flags));
                let (r0, _) = call("map_update_elem", *cpu, *flags, key, &value);
                prop_assert_eq!(updated, Side::errno(r0));
            }
            Op::Delete(cpu, key) => {
                let (r0, _) = call("map_delete_elem", *cpu, 0, key, &[]);
                prop_assert_eq!(ours.delete(key), Side::errno(r0));
            }
            Op::Push(cpu, fill, flags) => {
                let value = self.value(*fill, false);
                let pushed = match ours.kind() {
                    Kind::Queue(queue) => queue.push(&value, bits(*flags)),
                    Kind::Bloom(bloom) => bloom.push(&value, bits(*flags)),
                    _ => panic!("it takes no values"),
                };
                let (r0, _) = call("map_push_elem", *cpu, *flags, &[], &value);
                prop_assert_eq!(pushed, Side::errno(r0));
            }
            Op::Pop(cpu) => {
                let Kind::Queue(queue) = ours.kind() else {
                    return Ok(());
                };
                let (r0, value) = call("map_pop_elem", *cpu, 0, &[], &[]);
                prop_assert_eq!(queue.pop(), Side::errno(r0).map(|()| value));
            }
            Op::Peek(cpu, fill) => {
                let value = self.value(*fill, false);
                let (r0, there) = call("map_peek_elem", *cpu, 0, &[], &value);
                let told = Side::errno(r0);
                match ours.kind() {
                    Kind::Queue(queue) => prop_assert_eq!(queue.peek(), told.map(|()| there)),
                    // A false positive of the kernel's may differ from bpflab's.
                    Kind::Bloom(bloom) if !bloom.contains(&value) => {}
                    _ => prop_assert_eq!(told, Ok(())),
                }
            }
            Op::Read(key, flags) => {
                if matches!(ours.kind(), Kind::Bloom(_)) {
                    return Ok(());
                }
                let read = ours.read_with(key, bits(*flags));
                let there = theirs.lookup(key, bits(*flags));
                prop_assert_eq!(read, there.map(|value| self.without_gaps(value)));
            }
            Op::Write(key, fill, flags) => {
                let value = self.value(*fill, true);
                let written = ours.write(key, &value, bits(*flags));
                prop_assert_eq!(written, theirs.update(key, &value, bits(*flags)));
            }
            Op::Remove(key) => prop_assert_eq!(ours.remove(key), theirs.delete(key)),
            Op::Take(key, flags) => {
                let taken = ours.take(key, bits(*flags));
                let there = theirs.lookup_and_delete(key, bits(*flags));
                prop_assert_eq!(taken, there.map(|value| self.without_gaps(value)));
            }
            Op::Next(key) => {
                let next = ours.next_key(key.as_deref());
                let there = theirs.next_key(key.as_deref());
                match order {
                    Order::Same => prop_assert_eq!(next, there),
                    Order::Any => {
                        // Which key is next is undefined, and so whether there is one.
                        let told = |next: Result<Vec<u8>, Errno>| match next {
                            Ok(_) | Err(Errno::ENOENT) => None,
                            Err(errno) => Some(errno),
                        };
                        prop_assert_eq!(told(next), told(there));
                    }
                }
            }
            Op::Walk => {
                let walked = walk(|key| ours.next_key(key));
                let there = walk(|key| theirs.next_key(key));
                prop_assert_eq!(sorted(walked, order), sorted(there, order));
            }
            // What fits into a small one depends on each map's buckets.
            Op::ReadBatch(1..8, _) | Op::TakeBatch(1..8, _) if order == Order::Any => {}
            Op::ReadBatch(count, flags) => {
                let read = all(*count, |from| ours.read_batch(from, *count, bits(*flags)));
                let there = all(*count, |from| {
                    self.same(theirs.lookup_batch(from, *count, bits(*flags)))
                });
                prop_assert_eq!(self.elements(read, order), self.elements(there, order));
            }
            Op::TakeBatch(count, flags) => {
                let read = all(*count, |from| ours.take_batch(from, *count, bits(*flags)));
                let there = all(*count, |from| {
                    self.same(theirs.lookup_and_delete_batch(from, *count, bits(*flags)))
                });
                prop_assert_eq!(self.elements(read, order), self.elements(there, order));
            }
            Op::WriteBatch(keys, fill, flags) => {
                let values: Vec<u8> = (0u8..)
                    .zip(keys)
                    .flat_map(|(n, _)| self.value(fill.wrapping_add(n), true))
                    .collect();
                let keys = keys.concat();
                let done = ours.write_batch(&keys, &values, bits(*flags));
                let there = theirs.update_batch(&keys, &values, bits(*flags));
                prop_assert_eq!(done.0, there.0);
                // A refused command leaves the count unchanged.
                if !matches!(done.0, Err(Errno::EPERM | Errno::EINVAL | Errno::ENOTSUPP)) {
                    prop_assert_eq!(done.1, there.1);
                }
            }
            Op::RemoveBatch(keys, flags) => {
                let keys = keys.concat();
                let done = ours.remove_batch(&keys, bits(*flags));
                let there = theirs.delete_batch(&keys, bits(*flags));
                prop_assert_eq!(done.0, there.0);
                if !matches!(done.0, Err(Errno::EPERM | Errno::EINVAL | Errno::ENOTSUPP)) {
                    prop_assert_eq!(done.1, there.1);
                }
            }
        }
        Ok(())
    }

    fn same(&self, batch: KernelBatch) -> Batch {
        Batch {
            keys: batch.keys,
            values: self.without_gaps(batch.values),
            next: batch.next,
            result: batch.result,
        }
    }

    /// A batch's elements one by one, and its result.
    fn elements(
        &self,
        (keys, values, result): (Vec<u8>, Vec<u8>, Result<(), Errno>),
        order: Order,
    ) -> (Vec<Element>, Result<(), Errno>) {
        let key = (self.ours.def().key_size as usize).max(1);
        let value = self.ours.user_value_size().max(1);
        let keys = keys.chunks(key).map(<[u8]>::to_vec);
        let values = values.chunks(value).map(<[u8]>::to_vec);
        let mut elements: Vec<_> = keys.zip(values).collect();
        if order == Order::Any {
            elements.sort();
        }
        (elements, result)
    }
}

fn sorted(keys: Result<Vec<Vec<u8>>, Errno>, order: Order) -> Result<Vec<Vec<u8>>, Errno> {
    let mut keys = keys?;
    if order == Order::Any {
        keys.sort();
    }
    Ok(keys)
}

/// Reads batch after batch until the last.
fn all(
    count: u32,
    mut batch: impl FnMut(Option<&[u8]>) -> Batch,
) -> (Vec<u8>, Vec<u8>, Result<(), Errno>) {
    let (mut keys, mut values, mut from) = (Vec::new(), Vec::new(), None);
    loop {
        let next = batch(from.as_deref());
        keys.extend(next.keys);
        values.extend(next.values);
        match next.result {
            Ok(()) if count > 0 => from = Some(next.next),
            result => return (keys, values, result),
        }
    }
}
