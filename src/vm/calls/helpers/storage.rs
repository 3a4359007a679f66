//! Local storage of kernel objects (`kernel/bpf/bpf_local_storage.c`,
//! `kernel/bpf/local_storage.c`).

use crate::spec::{AttachRule, AttachType, MapType, ProgType};
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Returned, unfit};
use crate::vm::maps::{Kind, LocalStorage, Map, MapHandle};

/// An operation on a storage map.
type Use<T> = fn(&mut Call<'_>, &LocalStorage, MapHandle) -> Result<T, HelperProblem>;

/// Applies an operation to the storage map in argument 1, which must have this type.
fn with<T>(call: &mut Call<'_>, map_type: MapType, then: Use<T>) -> Result<T, HelperProblem> {
    let (handle, map) = call.map(1)?;
    match map.kind() {
        Kind::Storage(storage) if map.def().map_type == map_type => then(call, storage, handle),
        _ => Err(unfit(1, &*map)),
    }
}

/// The address of the object in argument 2; `None` for a null pointer and for a freed object,
/// whose storage is removed.
fn owner(call: &mut Call<'_>, storage: &LocalStorage) -> Result<Option<u64>, HelperProblem> {
    let object = call.arg(2);
    if object == 0 {
        return Ok(None);
    }
    // A socket has several addresses for programs.
    let socket = match storage.base().def().map_type {
        MapType::SkStorage => call.machine.socket_owner(object),
        _ => None,
    };
    let owner = socket.unwrap_or(object);
    if owner.cast_signed() >= 0 {
        return Err(call.wrong(2, "an object of the kernel"));
    }
    // All structures of a socket share its storage.
    let owner = call.machine.socket_owner(owner).unwrap_or(owner);
    if call.machine.space.is_freed(owner) {
        // It may have had no storage.
        let _ = storage.remove(owner);
        return Ok(None);
    }
    Ok(Some(owner))
}

/// `(map, object, initial value or null, flags)`: the address of the object's value, or null.
fn get(call: &mut Call<'_>, storage: &LocalStorage, handle: MapHandle) -> Returned {
    let Some(owner) = owner(call, storage)? else {
        return Ok(0);
    };
    let size = call.map_of(1, handle)?.def().value_size as usize;
    let initial = match call.arg(3) {
        0 => None,
        _ => Some(call.read(3, size)?),
    };
    let element = storage.element(owner, call.arg(4), initial.as_deref());
    call.machine.note_owner(handle, owner);
    let address = element
        .ok()
        .and_then(|element| call.machine.value_address(handle, element));
    Ok(address.unwrap_or_default())
}

/// `(map, object)`: deletes the object's value.
fn delete(call: &mut Call<'_>, storage: &LocalStorage, _: MapHandle) -> Returned {
    let deleted = match owner(call, storage)? {
        Some(owner) => storage.remove(owner),
        None => Err(Errno::EINVAL),
    };
    Ok(deleted.map_or_else(Errno::to_ret, |()| 0))
}

pub(super) fn task_storage_get(call: &mut Call<'_>) -> Returned {
    with(call, MapType::TaskStorage, get)
}

pub(super) fn task_storage_delete(call: &mut Call<'_>) -> Returned {
    with(call, MapType::TaskStorage, delete)
}

pub(super) fn inode_storage_get(call: &mut Call<'_>) -> Returned {
    with(call, MapType::InodeStorage, get)
}

pub(super) fn inode_storage_delete(call: &mut Call<'_>) -> Returned {
    with(call, MapType::InodeStorage, delete)
}

pub(super) fn sk_storage_get(call: &mut Call<'_>) -> Returned {
    with(call, MapType::SkStorage, get)
}

pub(super) fn sk_storage_delete(call: &mut Call<'_>) -> Returned {
    with(call, MapType::SkStorage, delete)
}

pub(super) fn cgrp_storage_get(call: &mut Call<'_>) -> Returned {
    with(call, MapType::CgrpStorage, get)
}

pub(super) fn cgrp_storage_delete(call: &mut Call<'_>) -> Returned {
    with(call, MapType::CgrpStorage, delete)
}

/// `bpf_get_local_storage(map, flags)`: the value of the cgroup that the program is attached
/// to; here that is the current task's cgroup. Never null.
pub(super) fn get_local_storage(call: &mut Call<'_>) -> Returned {
    let (handle, map) = call.map(1)?;
    let Kind::CgroupStorage(storage) = map.kind() else {
        return Err(unfit(1, &*map));
    };
    let cgroup = call.machine.world.task().cgroup_id();
    let prog_type = call.machine.current().map(|current| current.prog_type);
    let attach_type = prog_type.map_or(0, attach_type);
    let element = storage.element(call.machine.world.cpu(), cgroup, attach_type);
    let address = element
        .ok()
        .and_then(|element| call.machine.value_address(handle, element));
    address.ok_or_else(|| HelperProblem::Other("too many cgroups for the storage map".into()))
}

/// The attach type in the storage's key: the first one of the program type, however the
/// program was loaded.
fn attach_type(prog_type: ProgType) -> u32 {
    let number = |attach: AttachType| attach as u32;
    match (prog_type, prog_type.info().attach) {
        (_, AttachRule::OneOf(types)) => types.first().copied().map_or(0, number),
        (ProgType::SockOps, _) => number(AttachType::CgroupSockOps),
        (ProgType::CgroupDevice, _) => number(AttachType::CgroupDevice),
        (ProgType::CgroupSysctl, _) => number(AttachType::CgroupSysctl),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::MapFlags;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;
    use crate::{program::MapDef, util::HelperId};

    const KINDS: [(MapType, HelperId, HelperId); 4] = [
        (
            MapType::TaskStorage,
            id::task_storage_get,
            id::task_storage_delete,
        ),
        (
            MapType::InodeStorage,
            id::inode_storage_get,
            id::inode_storage_delete,
        ),
        (
            MapType::SkStorage,
            id::sk_storage_get,
            id::sk_storage_delete,
        ),
        (
            MapType::CgrpStorage,
            id::cgrp_storage_get,
            id::cgrp_storage_delete,
        ),
    ];

    fn storage(bench: &mut Bench, map_type: MapType) -> u64 {
        let mut def = MapDef::new("s", map_type, 4, 8, 0);
        def.flags = MapFlags::NO_PREALLOC;
        bench.add(&def).0
    }

    #[test]
    fn each_object_has_a_value_of_its_own() {
        for (map_type, get, delete) in KINDS {
            let mut bench = Bench::new();
            let map = storage(&mut bench, map_type);
            let object = |bench: &mut Bench| {
                let object = bench.machine.world.kernel_bytes(&[0; 64]).unwrap();
                (object.address(), object)
            };
            let ((first, object_of_first), (second, _kept)) =
                (object(&mut bench), object(&mut bench));
            let initial = bench.memory(&[7; 8]);
            assert_eq!(bench.ok(get, [map, first, 0, 0]), 0);
            assert_eq!(bench.ok(get, [map, first, 0, 2]), 0, "unknown flags");
            let value = bench.ok(get, [map, first, initial, 1]);
            assert_eq!(bench.bytes(value, 8), [7; 8]);
            assert_eq!(bench.ok(get, [map, first, 0, 1]), value);
            let other = bench.ok(get, [map, second, 0, 1]);
            assert_eq!(bench.bytes(other, 8), [0; 8]);
            assert_eq!(bench.ok(get, [map, 0, 0, 1]), 0, "no object");
            assert_eq!(bench.errno(delete, [map, 0]), Errno::EINVAL);
            assert_eq!(bench.ok(delete, [map, second]), 0);
            assert_eq!(bench.errno(delete, [map, second]), Errno::ENOENT);
            assert!(object_of_first.free());
            assert_eq!(bench.ok(get, [map, first, 0, 1]), 0, "it was freed");
            assert!(bench.machine.space.take_stale().is_empty());
            bench.bytes(value, 8);
            assert_eq!(bench.machine.space.take_stale().len(), 1);
        }
    }

    #[test]
    fn maps_of_another_kind_and_what_is_no_object_are_refused() {
        let mut bench = Bench::new();
        let (tasks, inodes) = (
            storage(&mut bench, MapType::TaskStorage),
            storage(&mut bench, MapType::InodeStorage),
        );
        assert!(
            bench
                .call(id::task_storage_get, [inodes, 1 << 63, 0, 1])
                .is_err()
        );
        let problem = bench.call(id::task_storage_get, [tasks, 0x1000, 0, 1]);
        assert!(
            problem
                .unwrap_err()
                .to_string()
                .contains("an object of the kernel")
        );
        assert!(bench.call(id::get_local_storage, [tasks, 0]).is_err());
    }

    #[test]
    fn a_cgroups_storage_is_that_of_the_current_tasks_cgroup() {
        let mut bench = Bench::on(ProgType::CgroupSkb, &Event::packet([0; 64]));
        let (map, _, storage) = bench.map(MapType::CgroupStorage, 16, 8, 0);
        bench.machine.world.task().set_cgroup_id(7);
        let value = bench.ok(id::get_local_storage, [map, 0]);
        assert_eq!(bench.ok(id::get_local_storage, [map, 0]), value);
        bench.machine.space.store(value, 8, 5).unwrap();
        let mut key = 7u64.to_le_bytes().to_vec();
        key.resize(16, 0);
        assert_eq!(storage.read(&key), Ok(5u64.to_le_bytes().to_vec()));
        bench.machine.world.task().set_cgroup_id(8);
        assert_ne!(bench.ok(id::get_local_storage, [map, 0]), value);

        let (per_cpu, ..) = bench.map(MapType::PercpuCgroupStorage, 8, 8, 0);
        let first = bench.ok(id::get_local_storage, [per_cpu, 0]);
        bench.machine.world.set_cpu(1);
        assert_ne!(bench.ok(id::get_local_storage, [per_cpu, 0]), first);
    }
}
