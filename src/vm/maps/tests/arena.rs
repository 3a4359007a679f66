//! Arenas.

use super::super::{Arena, Kind};
use super::*;

const PAGE: u64 = 4096;
const START: u64 = 1 << 44;

fn arena(map: &dyn Map) -> &Arena {
    match map.kind() {
        Kind::Arena(arena) => arena,
        other => panic!("{other:?}"),
    }
}

fn at(extra: u64, pages: u32, flags: MapFlags) -> Arc<dyn Map> {
    let mut def = MapDef::new("arena", MapType::Arena, 0, 0, pages);
    def.flags = MapFlags::MMAPABLE | flags;
    def.extra = extra;
    make(&def, 2).unwrap()
}

#[test]
fn pages_are_allocated_and_freed() {
    let map = at(START, 10, MapFlags::empty());
    let arena = arena(&*map);
    assert_eq!(arena.allocate(0, 0), 0);
    assert_eq!(arena.allocate(0, 11), 0);
    assert_eq!(arena.allocate(0, 4), START);
    assert_eq!(arena.allocate(START + 6 * PAGE, 2), START + 6 * PAGE);
    assert_eq!(arena.allocate(START + 7 * PAGE, 1), 0, "taken");
    assert_eq!(arena.allocate(START + 7, 1), 0, "no page's address");
    assert_eq!(arena.allocate(START + 9 * PAGE, 2), 0, "past the end");
    assert_eq!(arena.allocate(0, 3), 0, "two and two are left");
    assert_eq!(arena.page_count(), 6);
    arena.release(START + PAGE, 2);
    // The smallest range; of several, the latest.
    assert_eq!(arena.allocate(0, 2), START + PAGE);
    arena.release(START, 100);
    assert_eq!((arena.page_count(), arena.allocate(0, 10)), (0, START));
}

#[test]
fn freed_pages_come_back_empty() {
    let map = at(0, 2, MapFlags::empty());
    let arena = arena(&*map);
    let page = arena.allocate(0, 1);
    assert!(
        page > 1 << 32 && page & 0xffff_ffff > 0,
        "not like a null pointer"
    );
    arena.write_memory(page + 8, &[7; 8]).unwrap();
    assert_eq!(
        arena.read_memory(page & 0xffff_ffff, 16).unwrap()[8..],
        [7; 8]
    );
    arena.release(page, 1);
    assert_eq!(arena.allocate(page, 1), page);
    assert_eq!(arena.read_memory(page + 8, 8), Ok(vec![0; 8]));
}

#[test]
fn user_space_faults_pages_in_unless_it_asked_not_to() {
    let map = at(START, 2, MapFlags::empty());
    let lazy = arena(&*map);
    assert_eq!(lazy.read_memory(START + PAGE - 4, 8), Ok(vec![0; 8]));
    assert_eq!(lazy.page_count(), 2);
    assert_eq!(lazy.allocate(0, 1), 0, "both are taken");
    assert_eq!(
        lazy.read_memory(START + 2 * PAGE - 4, 8),
        Err(Errno::EFAULT)
    );
    assert_eq!(lazy.read_memory(START + (1 << 32), 1), Err(Errno::EFAULT));
    let map = at(START, 2, MapFlags::SEGV_ON_FAULT);
    let strict = arena(&*map);
    assert_eq!(strict.write_memory(START, &[1]), Err(Errno::EFAULT));
    assert_eq!(strict.allocate(0, 1), START);
    assert_eq!(strict.write_memory(START, &[1]), Ok(()));
}

#[test]
fn reserved_pages_are_not_given_out() {
    let map = at(START, 4, MapFlags::empty());
    let arena = arena(&*map);
    assert_eq!(arena.reserve(START, 0), Ok(()));
    assert_eq!(arena.reserve(START + 1, 1), Err(Errno::EINVAL));
    assert_eq!(arena.reserve(START + 3 * PAGE, 2), Err(Errno::EINVAL));
    assert_eq!(arena.reserve(START, 2), Ok(()));
    assert_eq!(arena.reserve(START + PAGE, 2), Err(Errno::EBUSY));
    assert_eq!(arena.allocate(0, 3), 0);
    assert_eq!(arena.allocate(0, 2), START + 2 * PAGE);
    assert_eq!(arena.page_count(), 2);
}

#[test]
fn pointers_have_the_users_upper_half_unless_they_are_null() {
    let map = at(START, 4, MapFlags::empty());
    assert_eq!(arena(&*map).to_user(0xabcd_0000_1234), START | 0x1234);
    assert_eq!(arena(&*map).to_user(0xabcd_0000_0000), 0);
    let map = at(START, 4, MapFlags::NO_USER_CONV);
    assert_eq!(arena(&*map).to_user(0xabcd_0000_1234), 0x1234);
}

#[test]
fn an_arena_lies_below_a_border_of_4_gib() {
    let cases = [
        (1, 1, Errno::EINVAL),
        (START + 1, 1, Errno::EINVAL),
        ((1 << 32) - PAGE, 2, Errno::ERANGE),
        (0, (1 << 20) + 1, Errno::E2BIG),
    ];
    for (extra, pages, errno) in cases {
        let mut def = MapDef::new("arena", MapType::Arena, 0, 0, pages);
        (def.flags, def.extra) = (MapFlags::MMAPABLE, extra);
        assert_eq!(
            make(&def, 2).unwrap_err().errno,
            errno,
            "{extra:#x} {pages}"
        );
    }
    assert_eq!(
        arena(&*at((1 << 32) - PAGE, 1, MapFlags::empty())).user_end(),
        1 << 32
    );
    let map = at(0, 1 << 20, MapFlags::empty());
    assert_eq!(arena(&*map).user_start() & 0xffff_ffff, 0);
    assert_eq!(map.read(&[]), Err(Errno::EINVAL));
    assert_eq!(map.write(&[], &[], ANY), Err(Errno::EOPNOTSUPP));
}
