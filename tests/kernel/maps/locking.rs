//! Values with a lock, a timer and a kptr: the parts that updates and look-ups leave alone.

use bpflab::btf::{Array, Btf, Builder, Encoding, Member};
use bpflab::program::MapDef;
use bpflab::spec::{MapFlags, MapType};
use bpflab::util::TypeId;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::operation::{Op, Order, ops};
use super::pair::{Pair, cpus};

/// A value of 32 bytes: a number, a lock, a timer, a number; or without the timer one of 16
/// bytes.
fn types() -> (Btf, TypeId, [TypeId; 2]) {
    let mut builder = Builder::new();
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    let long = builder.int("unsigned long", 8, Encoding::Unsigned);
    let member = |name, ty, bytes: u32| Member {
        name,
        ty,
        bit_offset: bytes * 8,
        bitfield: None,
    };
    let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
    let two = builder.array(Array {
        element: long,
        index: number,
        len: 2,
    });
    let timer = builder.structure("bpf_timer", 16, &[member("__opaque", two, 0)]);
    let small = [
        member("number", number, 0),
        member("lock", lock, 4),
        member("last", long, 8),
    ];
    let small = builder.structure("small", 16, &small);
    let large = [
        member("number", number, 0),
        member("lock", lock, 4),
        member("timer", timer, 8),
        member("last", long, 24),
    ];
    let large = builder.structure("large", 32, &large);
    (builder.build().unwrap(), number, [small, large])
}

fn keys() -> BoxedStrategy<Vec<u8>> {
    (0..6u32).prop_map(|key| key.to_le_bytes().to_vec()).boxed()
}

fn hold(def: &MapDef, types: &Btf, order: Order, keep: fn(&Op) -> bool) {
    let Some(cpus) = cpus() else { return };
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let ops = ops(keys(), cpus).prop_filter("fits", keep);
    let result = runner.run(&vec(ops, 0..50), |ops| {
        let Some(pair) = Pair::new(def, Some(types)) else {
            return Ok(());
        };
        for op in &ops {
            pair.agree(op, order)?;
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{} {:?}: {error}", def.map_type, def.flags));
}

#[test]
fn values_with_a_lock() {
    // Raw tracepoint programs may not use such maps, so user space makes all operations.
    let by_user = |op: &Op| !matches!(op, Op::Lookup(..) | Op::Update(..) | Op::Delete(..));
    let (types, key, values) = types();
    for (value, size) in values.into_iter().zip([16, 32]) {
        for (map_type, flags, order) in [
            (MapType::Array, MapFlags::empty(), Order::Same),
            (MapType::Hash, MapFlags::empty(), Order::Any),
            (MapType::Hash, MapFlags::NO_PREALLOC, Order::Any),
            // These can't have a lock: libbpf creates them without BTF types.
            (MapType::PercpuArray, MapFlags::empty(), Order::Same),
            (MapType::PercpuHash, MapFlags::empty(), Order::Any),
            (MapType::Array, MapFlags::RDONLY_PROG, Order::Same),
        ] {
            let mut def = MapDef::new("m", map_type, 4, size, 4);
            (def.key_type, def.value_type, def.flags) = (Some(key), Some(value), flags);
            hold(&def, &types, order, by_user);
        }
    }
}
