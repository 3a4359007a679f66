//! Local storage of objects and of cgroups.

use super::super::{CgroupStorage, Kind, LocalStorage};
use super::*;

const TASK: u64 = 0xffff_8881_0000_1000;
const CREATE: u64 = 1;

fn storage(map: &dyn Map) -> &LocalStorage {
    match map.kind() {
        Kind::Storage(storage) => storage,
        other => panic!("{other:?}"),
    }
}

fn cgroup_storage(map: &dyn Map) -> &CgroupStorage {
    match map.kind() {
        Kind::CgroupStorage(storage) => storage,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_has_one_value_until_it_is_freed() {
    for map_type in [
        MapType::TaskStorage,
        MapType::InodeStorage,
        MapType::SkStorage,
        MapType::CgrpStorage,
    ] {
        let map = map(map_type, 4, 8, 0);
        let storage = storage(&*map);
        assert_eq!(storage.element(TASK, 0, None), Err(Errno::ENOENT));
        assert_eq!(storage.element(TASK, 2, None), Err(Errno::EINVAL));
        let element = storage.element(TASK, CREATE, Some(&[7; 8])).unwrap();
        assert_eq!(storage.element(TASK, CREATE, Some(&[9; 8])), Ok(element));
        assert_eq!(
            storage.get(TASK),
            Some(vec![7; 8]),
            "the first initial value"
        );
        let other = storage.element(TASK + 64, CREATE, None).unwrap();
        assert_ne!(other, element);
        assert_eq!(storage.get(TASK + 64), Some(vec![0; 8]));
        assert_eq!(storage.owners(), [TASK, TASK + 64]);
        let slab = map.slab().unwrap();
        assert_eq!(
            (storage.remove(TASK), storage.remove(TASK)),
            (Ok(()), Err(Errno::ENOENT))
        );
        assert!(!slab.is_live(element) && slab.is_live(other));
        assert_eq!(storage.owners(), [TASK + 64]);
    }
}

#[test]
fn a_test_sets_values_by_owner_and_the_system_call_finds_no_descriptor() {
    let map = map(MapType::TaskStorage, 4, 8, 0);
    let storage = storage(&*map);
    let set = |value: &[u8], flags| storage.set(TASK, value, flags);
    assert_eq!(set(&[1; 8], UpdateFlags::EXIST), Err(Errno::ENOENT));
    assert_eq!(set(&[1; 8], UpdateFlags::NOEXIST), Ok(()));
    assert_eq!(set(&[1; 8], UpdateFlags::NOEXIST), Err(Errno::EEXIST));
    assert_eq!(set(&[1; 7], ANY), Err(Errno::EINVAL));
    assert_eq!(set(&[2; 8], UpdateFlags::LOCK), Err(Errno::EINVAL));
    assert_eq!(storage.get(TASK), Some(vec![1; 8]));
    assert_eq!(map.read(&[0; 4]), Err(Errno::EBADF));
    assert_eq!(map.write(&[0; 4], &[0; 8], ANY), Err(Errno::EBADF));
    assert_eq!(map.remove(&[0; 4]), Err(Errno::EBADF));
    assert_eq!(map.next_key(None), Err(Errno::ENOTSUPP));
    assert_eq!(map.lookup(0, &[0; 4]), Err(Errno::EOPNOTSUPP));
    map.freeze();
    assert_eq!(set(&[1; 8], ANY), Err(Errno::EPERM));
}

#[test]
fn owners_that_come_and_go_take_no_more_room() {
    // Large values: few owners fit.
    let map = map(MapType::TaskStorage, 4, 65_407, 0);
    let storage = storage(&*map);
    for owner in 1..2000u64 {
        storage.element(owner, CREATE, None).unwrap();
        storage.remove(owner).unwrap();
    }
    let mut owners = (1..2000u64).map(|owner| storage.element(owner, CREATE, None));
    assert_eq!(owners.find(Result::is_err), Some(Err(Errno::ENOMEM)));
}

#[test]
fn a_cgroups_storage_is_there_once_a_program_is() {
    let map = map(MapType::CgroupStorage, 16, 8, 0);
    let storage = cgroup_storage(&*map);
    let key = storage.key(7, 1);
    assert_eq!(
        key,
        [[7, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]].concat()
    );
    assert_eq!(map.read(&key), Err(Errno::ENOENT));
    assert_eq!(map.write(&key, &[1; 8], ANY), Err(Errno::ENOENT));
    assert_eq!(
        map.write(&key, &[1; 8], UpdateFlags::NOEXIST),
        Err(Errno::EINVAL)
    );
    assert_eq!(map.remove(&key), Err(Errno::EINVAL));
    let element = storage.element(0, 7, 1).unwrap();
    assert_eq!(storage.element(1, 7, 1), Ok(element));
    assert_ne!(storage.element(0, 7, 0), Ok(element), "another attach type");
    assert_eq!(map.write(&key, &[1; 8], UpdateFlags::EXIST), Ok(()));
    assert_eq!(map.read(&key), Ok(vec![1; 8]));
    assert_eq!(keys(&*map).len(), 2);
}

#[test]
fn a_cgroups_storage_may_be_one_for_each_cpu_and_for_all_attach_types() {
    let map = map(MapType::PercpuCgroupStorage, 8, 4, 0);
    let storage = cgroup_storage(&*map);
    let first = storage.element(0, 7, 1).unwrap();
    let second = storage.element(1, 7, 2).unwrap();
    assert_ne!(first, second);
    map.slab().unwrap().set_value(second, &[5; 4]).unwrap();
    let all = [[0; 8], [5, 5, 5, 5, 0, 0, 0, 0]].concat();
    assert_eq!(map.read(&7u64.to_le_bytes()), Ok(all));
}
