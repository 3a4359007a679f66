//! Stack traces.

use super::super::{Kind, StackTraces};
use super::*;
use crate::spec::StackFlags;

const NONE: StackFlags = StackFlags::empty();
const STACK: [u64; 2] = [0x10, 0x20];

fn stacks(map: &dyn Map) -> &StackTraces {
    match map.kind() {
        Kind::StackTraces(stacks) => stacks,
        other => panic!("{other:?}"),
    }
}

/// The bytes of a value: addresses, then zeros.
fn value(addresses: &[u64], size: usize) -> Vec<u8> {
    let mut value: Vec<u8> = addresses.iter().flat_map(|ip| ip.to_le_bytes()).collect();
    value.resize(size, 0);
    value
}

#[test]
fn a_stack_has_the_id_of_its_bucket() {
    let map = map(MapType::StackTrace, 4, 32, 3);
    let stacks = stacks(&*map);
    let ids: Vec<u32> = (1..20u64)
        .map(|ip| {
            let id = stacks.insert(&[ip, ip + 1], NONE);
            id.or_else(|_| stacks.insert(&[ip, ip + 1], StackFlags::REUSE_STACKID))
        })
        .filter_map(Result::ok)
        .collect();
    // Three entries make four buckets.
    assert!(ids.iter().all(|id| *id < 4), "{ids:?}");
    let there = keys(&*map);
    assert!(there.len() <= 3 && there.is_sorted(), "{there:?}");
    for key in there {
        assert_eq!(map.read(&key).unwrap().len(), 32);
        assert_eq!(map.remove(&key), Ok(()));
        assert_eq!(map.remove(&key), Err(Errno::ENOENT));
        assert_eq!(map.read(&key), Err(Errno::ENOENT));
    }
    assert_eq!(map.remove(&4u32.to_le_bytes()), Err(Errno::E2BIG));
    assert_eq!(map.read(&4u32.to_le_bytes()), Err(Errno::ENOENT));
    assert_eq!(map.write(&[0; 4], &[0; 32], ANY), Err(Errno::EINVAL));
    assert_eq!(map.next_key(None), Err(Errno::ENOENT));
}

#[test]
fn stacks_collide_as_in_the_kernel() {
    let two = map(MapType::StackTrace, 4, 32, 2);
    let stacks = stacks(&*two);
    let id = stacks.insert(&STACK, NONE).unwrap();
    assert_eq!(stacks.insert(&STACK, NONE), Ok(id), "the same stack");
    assert_eq!(two.read(&id.to_le_bytes()), Ok(value(&STACK, 32)));
    let others: Vec<_> = (1..100u64)
        .map(|ip| ([ip], stacks.insert(&[ip], NONE)))
        .collect();
    let is_refused = |(_, id): &&([u64; 1], _)| *id == Err(Errno::EEXIST);
    let (other, _) = *others.iter().find(is_refused).unwrap();
    let id_of_other = stacks.insert(&other, StackFlags::FAST_STACK_CMP);
    assert_eq!(id_of_other, Err(Errno::EEXIST), "another hash");
    // Both entries are used, and the new stack needs one before it frees the old one.
    assert_eq!(keys(&*two).len(), 2);
    assert_eq!(
        stacks.insert(&other, StackFlags::REUSE_STACKID),
        Err(Errno::ENOMEM)
    );
    for key in keys(&*two) {
        two.remove(&key).unwrap();
    }
    let id = stacks.insert(&other, NONE).unwrap();
    let same = others.iter().filter(|(stack, _)| *stack != other);
    let mut same = same.filter(|(stack, _)| stacks.insert(stack, NONE) == Err(Errno::EEXIST));
    let (third, _) = *same.next().unwrap();
    let spare = keys(&*two).into_iter().find(|key| *key != id.to_le_bytes());
    if let Some(spare) = spare {
        two.remove(&spare).unwrap();
    }
    assert_eq!(stacks.insert(&third, StackFlags::REUSE_STACKID), Ok(id));
    assert_eq!(two.read(&id.to_le_bytes()), Ok(value(&third, 32)));
    assert_eq!(two.take(&id.to_le_bytes(), ANY), Ok(value(&third, 32)));
    assert_eq!(two.take(&id.to_le_bytes(), ANY), Err(Errno::ENOENT));
}

#[test]
fn long_stacks_are_cut_and_empty_ones_refused() {
    let map = map(MapType::StackTrace, 4, 16, 4);
    let stacks = stacks(&*map);
    assert_eq!(stacks.insert(&[], NONE), Err(Errno::EFAULT));
    let id = stacks.insert(&[1, 2, 3], NONE).unwrap();
    assert_eq!(stacks.insert(&[1, 2], NONE), Ok(id));
    assert_eq!(map.read(&id.to_le_bytes()), Ok(value(&[1, 2], 16)));
}

#[test]
fn build_ids_take_the_place_of_addresses() {
    let mut def = MapDef::new("m", MapType::StackTrace, 4, 64, 1);
    def.flags = MapFlags::STACK_BUILD_ID;
    let map = make(&def, 2).unwrap();
    let stacks = stacks(&*map);
    assert_eq!(stacks.max_depth(), 2);
    let id = stacks.insert(&[7], NONE).unwrap();
    let bytes = map.read(&id.to_le_bytes()).unwrap();
    assert_eq!((bytes[0], bytes[24], &bytes[32..]), (2, 7, &[0; 32][..]));
    // An entry is allocated before stacks are compared.
    assert_eq!(stacks.insert(&[7], NONE), Err(Errno::ENOMEM));
    assert_eq!(stacks.insert(&[7], StackFlags::FAST_STACK_CMP), Ok(id));
    map.remove(&id.to_le_bytes()).unwrap();
    assert_eq!(stacks.insert_build_ids(&[7], &[[9; 32]], NONE), Ok(id));
    assert_eq!(map.read(&id.to_le_bytes()).unwrap()[..32], [9; 32]);
    assert_eq!(stacks.insert_build_ids(&[7], &[], NONE), Err(Errno::EINVAL));
}
