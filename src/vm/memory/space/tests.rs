use std::sync::Arc;

use super::super::kernel::{Area, NewBlock};
use super::super::slab::Slab;
use super::*;

fn block(len: usize) -> Arc<SharedBytes> {
    Arc::new(SharedBytes::zeroed(len))
}

#[test]
fn accesses_are_judged_whole() {
    let mut space = Space::new();
    let at = space.insert(Region::bytes("context", block(16))).unwrap();
    assert_eq!(space.store(at.plus(8), 8, 0x0102), Ok(()));
    assert_eq!(space.load(at.plus(8), 2), Ok(0x0102));
    assert_eq!(
        space.load(at.plus(12), 8).unwrap_err().to_string(),
        "reads 8 bytes at context+12, 4 bytes past its end (16 bytes)"
    );
    assert_eq!(
        space
            .store(at.plus(u64::MAX), 1, 0)
            .unwrap_err()
            .to_string(),
        "writes 1 byte at context-1, 1 byte before its start"
    );
    assert_eq!(
        space.load(8, 4).unwrap_err().to_string(),
        "reads 4 bytes at a null pointer+8"
    );
    assert_eq!(
        space.load(0x1234_5678, 4).unwrap_err().to_string(),
        "reads 4 bytes at 0x12345678 (unmapped)"
    );
}

#[test]
fn map_elements_have_gaps_between_them() {
    let mut space = Space::new();
    let slab = Arc::new(Slab::array(8, 64));
    slab.set_value(12, &[9, 0, 0, 0, 0, 0, 0, 0]);
    let at = space
        .insert(Region::elements("map value hist", slab))
        .unwrap();
    let twelve = at.plus(Region::element_offset(8, 12));
    assert_eq!(space.load(twelve, 8), Ok(9));
    assert_eq!(
        space.load(twelve + 4, 8).unwrap_err().to_string(),
        "reads 8 bytes at map value hist[12]+4, 4 bytes past its end (8 bytes)"
    );
    assert!(space.load(twelve + 8, 1).is_err());
    assert!(
        space
            .load(at.plus(Region::element_offset(8, 64)), 1)
            .is_err()
    );
}

#[test]
fn a_freed_region_is_seen_even_when_its_slot_lives_again() {
    let mut space = Space::new();
    let first = space.insert(Region::bytes("record", block(8))).unwrap();
    assert!(space.remove(first));
    assert!(!space.remove(first));
    let second = space.insert(Region::bytes("record", block(8))).unwrap();
    assert_eq!(second.region(), first.region());
    assert_eq!(
        space.load(first.register(), 8).unwrap_err().to_string(),
        "reads 8 bytes at record, which was freed"
    );
    assert_eq!(space.load(second.register(), 8), Ok(0));
    let third = space.renew(second);
    assert!(space.load(second.register(), 8).is_err());
    assert_eq!(space.load(third.register(), 8), Ok(0));
}

#[test]
fn deleted_elements_stay_readable_and_are_noted() {
    let mut space = Space::new();
    let slab = Arc::new(Slab::keyed(4, 8, 4));
    slab.revive(0, &5u32.to_le_bytes());
    let at = space
        .insert(Region::elements("map value m", slab.clone()))
        .unwrap();
    assert_eq!(space.load(at.register(), 8), Ok(0));
    assert!(space.take_stale().is_empty());
    slab.kill(0);
    assert_eq!(space.load(at.register(), 8), Ok(0));
    let stale = space.take_stale();
    assert_eq!(stale.len(), 1);
    assert_eq!(stale[0].to_string(), "map value m[5]");
}

#[test]
fn rights_hidden_bytes_windows_and_alignment() {
    let mut space = Space::new();
    let region = Region::bytes("context", block(64)).with_hidden(8);
    let context = space.insert(region).unwrap();
    assert_eq!(
        space.load(context.plus(4), 4).unwrap_err().to_string(),
        "reads 4 bytes at context+4, whose first 8 bytes are not for programs"
    );
    let region = Region::bytes("map value ro", block(8)).with_rights(Rights::Read);
    let frozen = space.insert(region).unwrap();
    assert!(space.load(frozen.register(), 8).is_ok());
    assert!(space.update(frozen.register(), 8, |v| v).is_err());
    assert_eq!(
        space.store(frozen.register(), 8, 1).unwrap_err().problem,
        Problem::ReadOnly
    );
    let packet = space
        .insert(Region::window("packet", block(300), 256..300))
        .unwrap();
    assert_eq!(
        space.load(packet.plus(296), 8).unwrap_err().to_string(),
        "reads 8 bytes at packet+40, 4 bytes past its end (44 bytes)"
    );
    assert_eq!(
        space
            .update(context.plus(12), 8, |v| v)
            .unwrap_err()
            .to_string(),
        "atomically changes 8 bytes at context+12, which is not a multiple of 8"
    );
}

#[test]
fn the_kernel_reads_what_programs_may_not() {
    let mut space = Space::new();
    let region = Region::bytes("context", block(16)).with_hidden(8);
    let context = space.insert(region.with_rights(Rights::Write)).unwrap();
    let mut bytes = [1; 8];
    assert_eq!(space.probe(context.register(), &mut bytes), Some(()));
    assert_eq!(bytes, [0; 8]);
    assert_eq!(space.probe(context.plus(9), &mut bytes), None);
    let values = Region::elements("map value m", Arc::new(Slab::array(4, 2)));
    let values = space.insert(values).unwrap();
    assert_eq!(space.probe(values.register(), &mut bytes[..4]), Some(()));
    assert_eq!(space.probe(values.plus(2), &mut bytes[..4]), None);
    let second = values.plus(2 * Region::element_offset(4, 1));
    assert_eq!(space.probe(second, &mut bytes[..4]), None);
    assert_eq!(space.probe(12, &mut bytes), None);
}

#[test]
fn a_fork_has_what_all_cpus_share_and_numbers_of_its_own() {
    let mut space = Space::new();
    let slab = Arc::new(Slab::array(8, 4));
    let gone = space.insert(Region::bytes("gone", block(8))).unwrap();
    let map = space.insert(Region::opaque("map m")).unwrap();
    let stack = space.insert(Region::bytes("stack", block(8))).unwrap();
    let values = Region::elements("map value m", slab.clone());
    let values = space.insert(values).unwrap();
    let context = space.insert(Region::bytes("context", block(8))).unwrap();
    space.remove(gone);

    let mut fork = space.fork();
    assert_eq!(fork.id(), space.id());
    assert!(fork.region(map).is_some());
    assert_eq!(fork.store(values.register(), 8, 7), Ok(()));
    assert_eq!(space.load(values.register(), 8), Ok(7));
    let table = |space: &Space, at: Address| {
        space
            .deltas()
            .load(8 * usize::from(at.region()), 8)
            .unwrap()
    };
    assert_eq!(table(&fork, values), table(&space, values));
    for own in [gone, stack, context] {
        assert_eq!((fork.region(own).is_none(), table(&fork, own)), (true, 0));
    }
    assert_eq!(
        fork.load(stack.register(), 8).unwrap_err().to_string(),
        "reads 8 bytes at stack, which was freed"
    );
    let mut next = || {
        fork.insert(Region::bytes("mine", block(8)))
            .unwrap()
            .region()
    };
    let wanted = [gone.region(), stack.region(), context.region()];
    assert_eq!([next(), next(), next()], wanted);
    assert_eq!(space.load(stack.register(), 8), Ok(0));
}

#[test]
fn pointer_fields_load_as_pointers() {
    let mut space = Space::new();
    let mut region = Region::bytes("context", block(24));
    region.pointers.push(super::super::region::PointerField {
        offset: 4,
        size: 4,
        value: 0x8000_0001_0000_0000,
    });
    let at = space.insert(region).unwrap();
    assert_eq!(space.load(at.plus(4), 4), Ok(0x8000_0001_0000_0000));
    assert_eq!(space.load(at.plus(0), 4), Ok(0));
    assert_eq!(space.load(at.plus(4), 2), Ok(0));
}

#[test]
fn the_kernels_objects_are_seen_by_all_cpus_whenever_they_are_made() {
    let space = Space::new();
    let fork = space.fork();
    let new = NewBlock::bytes("struct task_struct", 16, None);
    let task = space.kernel().insert(Area::Heap, new).unwrap();
    task.bytes().store(8, 8, 7);
    let at = task.address();
    assert_eq!(fork.load(at + 8, 8), Ok(7));
    assert_eq!(fork.read(at, 16).map(|bytes| bytes[8]), Ok(7));
    let mut bytes = [0; 8];
    assert_eq!(fork.probe(at + 8, &mut bytes), Some(()));
    assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(fork.probe(at + 9, &mut bytes), None);
    assert_eq!(
        fork.load(at + 12, 8).unwrap_err().to_string(),
        "reads 8 bytes at struct task_struct+12, 4 bytes past its end (16 bytes)"
    );
    assert_eq!(
        fork.store(at, 8, 1).unwrap_err().to_string(),
        "writes 8 bytes at struct task_struct, which is read-only"
    );
    task.set_writable(true);
    assert_eq!(fork.update(at + 8, 8, |old| old + 1), Ok(7));
    assert_eq!(space.load(at + 8, 8), Ok(8));
    space.kernel().free(&task);
    assert_eq!(
        fork.load(at, 8).unwrap_err().to_string(),
        "reads 8 bytes at struct task_struct, which was freed"
    );
    assert_eq!(fork.deltas().load(8 * 0xff88, 8), Some(0));
}

/// A pointer that was computed from one in bounds is off by at most 32 bits; any other number is
/// none, whatever region it happens to name.
#[test]
fn a_number_far_from_a_region_is_no_pointer() {
    let mut space = Space::new();
    let at = space.insert(Region::bytes("block", block(8))).unwrap();
    let at = at.register();
    let stray = u64::try_from(Address::STRAY).unwrap();
    assert!(matches!(
        space.pointer(at + 8 + stray),
        Pointer::Region { .. }
    ));
    assert!(matches!(space.pointer(at + 9 + stray), Pointer::Wild(_)));
}
