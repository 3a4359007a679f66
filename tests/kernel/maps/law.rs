//! Random operations on maps of every kind that stores values, in bpflab and in the kernel.

use bpflab::program::MapDef;
use bpflab::spec::{MapFlags, MapType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::operation::{Op, Order, keyless, ops};
use super::pair::{Pair, cpus};

const NONE: MapFlags = MapFlags::empty();

/// Sizes of key and value, max_entries and flags of a map.
type Shape = (MapType, u32, u32, u32, MapFlags);

fn def((map_type, key, value, entries, flags): Shape) -> MapDef {
    let mut def = MapDef::new("m", map_type, key, value, entries);
    def.flags = flags | map_type.info().flags_needed;
    def
}

/// Few keys, some more than max_entries.
fn keys(size: u32) -> BoxedStrategy<Vec<u8>> {
    let size = size as usize;
    (0..7u8)
        .prop_map(move |n| {
            let mut key = vec![0; size];
            key[0] = n;
            if let Some(last) = key.get_mut(4..).and_then(<[u8]>::last_mut) {
                *last = n ^ 0x55;
            }
            key
        })
        .boxed()
}

/// Prefixes of up to 8 and 9 bits, over few addresses.
fn prefixes(size: u32) -> BoxedStrategy<Vec<u8>> {
    let len = prop_oneof![8 => 0..=8u32, 1 => Just(9u32), 1 => Just(200u32)];
    (len, any::<u8>())
        .prop_map(move |(len, bits)| {
            let mut key = len.to_le_bytes().to_vec();
            key.push(bits & 0b1011_0001);
            key.resize(size as usize, 0);
            key
        })
        .boxed()
}

/// Runs random operations on both maps.
fn hold(shape: Shape, order: Order, cases: u32, ops: impl Strategy<Value = Op>) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&vec(ops, 0..50), |ops| {
        let Some(pair) = Pair::new(&def(shape), None) else {
            return Ok(());
        };
        for op in &ops {
            pair.agree(op, order)?;
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
}

const CASES: u32 = 60;

#[test]
fn arrays() {
    let Some(cpus) = cpus() else { return };
    for shape in [
        (MapType::Array, 4, 8, 4, NONE),
        (MapType::Array, 4, 16, 5, MapFlags::MMAPABLE),
        (MapType::PercpuArray, 4, 8, 4, NONE),
        (MapType::PercpuArray, 4, 16, 1, NONE),
    ] {
        hold(shape, Order::Same, CASES, ops(keys(4), cpus));
    }
}

#[test]
fn hashes() {
    let Some(cpus) = cpus() else { return };
    for shape in [
        (MapType::Hash, 4, 8, 4, NONE),
        (MapType::Hash, 16, 16, 4, NONE),
        (MapType::Hash, 3, 8, 5, MapFlags::NO_PREALLOC),
        (MapType::PercpuHash, 4, 8, 4, NONE),
        (MapType::PercpuHash, 8, 16, 4, MapFlags::NO_PREALLOC),
    ] {
        hold(shape, Order::Any, CASES, ops(keys(shape.1), cpus));
    }
}

/// Sizes of values that are not multiples of 8, which programs here don't read whole.
#[test]
fn odd_values() {
    let Some(cpus) = cpus() else { return };
    for (shape, order) in [
        ((MapType::Array, 4, 5, 4, NONE), Order::Same),
        ((MapType::PercpuArray, 4, 13, 4, NONE), Order::Same),
        ((MapType::Hash, 5, 3, 4, NONE), Order::Any),
        ((MapType::PercpuHash, 1, 9, 4, NONE), Order::Any),
    ] {
        let by_user = ops(keys(shape.1), cpus)
            .prop_filter("user space's", |op| !matches!(op, Op::Lookup(..)));
        hold(shape, order, CASES, by_user);
    }
}

#[test]
fn tries() {
    let Some(cpus) = cpus() else { return };
    for shape in [
        (MapType::LpmTrie, 5, 8, 4, NONE),
        (MapType::LpmTrie, 8, 16, 7, NONE),
    ] {
        hold(shape, Order::Same, CASES, ops(prefixes(shape.1), cpus));
    }
}

#[test]
fn queues_and_stacks() {
    let Some(cpus) = cpus() else { return };
    for map_type in [MapType::Queue, MapType::Stack] {
        hold(
            (map_type, 0, 16, 4, NONE),
            Order::Same,
            CASES,
            keyless(cpus),
        );
        hold((map_type, 0, 8, 1, NONE), Order::Same, CASES, keyless(cpus));
    }
}

#[test]
fn bloom_filters() {
    let Some(cpus) = cpus() else { return };
    let some = keyless(cpus).prop_filter("a filter's", |op| !matches!(op, Op::Pop(_)));
    hold(
        (MapType::BloomFilter, 0, 8, 100, NONE),
        Order::Same,
        CASES,
        some,
    );
}

/// Access flags are checked before anything else.
#[test]
fn maps_that_not_everybody_may_touch() {
    let Some(cpus) = cpus() else { return };
    let by_user = |keys| {
        ops(keys, cpus).prop_filter("user space's", |op| {
            !matches!(op, Op::Lookup(..) | Op::Update(..) | Op::Delete(..))
        })
    };
    for flags in [MapFlags::RDONLY, MapFlags::WRONLY] {
        hold(
            (MapType::Array, 4, 8, 4, flags),
            Order::Same,
            20,
            by_user(keys(4)),
        );
        hold(
            (MapType::Hash, 4, 8, 4, flags),
            Order::Any,
            20,
            by_user(keys(4)),
        );
        hold(
            (MapType::LpmTrie, 5, 8, 4, flags),
            Order::Same,
            20,
            by_user(prefixes(5)),
        );
        let keyless = keyless(cpus).prop_filter("user space's", |op| {
            !matches!(op, Op::Push(..) | Op::Pop(..) | Op::Peek(..))
        });
        hold((MapType::Queue, 0, 8, 4, flags), Order::Same, 20, keyless);
    }
}
