//! Maps of cgroups, sockets, devices and CPUs. The error numbers were observed on a running
//! 6.18 kernel.

use super::super::handle::ProgramHandle;
use super::super::{Kind, RedirectValue};
use super::*;

const NOEXIST: UpdateFlags = UpdateFlags::NOEXIST;
const EXIST: UpdateFlags = UpdateFlags::EXIST;
const LOCK: UpdateFlags = UpdateFlags::LOCK;
const PAST: [u8; 4] = 99u32.to_le_bytes();
const SOCKET: u64 = 0xffff_8881_0000_1000;

fn index(n: u32) -> [u8; 4] {
    n.to_le_bytes()
}

#[test]
fn cgroups_go_into_their_slots() {
    let map = map(MapType::CgroupArray, 4, 4, 3);
    let Kind::Cgroups(cgroups) = map.kind() else {
        panic!("no cgroup array");
    };
    assert_eq!(map.write(&index(0), &[9; 4], ANY), Err(Errno::EBADF));
    assert_eq!(map.write(&index(0), &[9; 4], EXIST), Err(Errno::EINVAL));
    assert_eq!(map.write(&PAST, &[9; 4], ANY), Err(Errno::E2BIG));
    assert_eq!(map.read(&index(0)), Err(Errno::ENOTSUPP));
    assert_eq!(map.remove(&index(0)), Err(Errno::ENOENT));
    assert_eq!(map.remove(&PAST), Err(Errno::E2BIG));
    assert_eq!(cgroups.cgroup(0), Err(Errno::EAGAIN));
    assert_eq!(cgroups.cgroup(3), Err(Errno::E2BIG));
    assert_eq!(cgroups.set(&index(0), 0, ANY), Err(Errno::EBADF));
    assert_eq!(cgroups.set(&index(0), SOCKET, ANY), Ok(()));
    assert_eq!(cgroups.cgroup(0), Ok(SOCKET));
    assert_eq!(map.remove(&index(0)), Ok(()));
    assert_eq!(keys(&*map).len(), 3);
    map.freeze();
    assert_eq!(cgroups.set(&index(0), SOCKET, ANY), Err(Errno::EPERM));
}

/// Deletion of an empty slot, and past the end.
#[test]
fn maps_of_sockets_differ_in_their_errors() {
    let cases = [
        (MapType::Sockmap, 8, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        (MapType::Xskmap, 4, Ok(()), Err(Errno::EINVAL)),
        (
            MapType::ReuseportSockarray,
            8,
            Err(Errno::ENOENT),
            Err(Errno::E2BIG),
        ),
        (MapType::Sockhash, 8, Err(Errno::ENOENT), Err(Errno::ENOENT)),
    ];
    for (map_type, size, empty, past) in cases {
        let map = map(map_type, 4, size, 3);
        let Kind::Sockets(sockets) = map.kind() else {
            panic!("{map_type} holds no sockets");
        };
        assert_eq!(map.remove(&index(0)), empty, "{map_type}");
        assert_eq!(map.remove(&PAST), past, "{map_type}");
        assert_eq!(sockets.set(&index(0), SOCKET, EXIST), Err(Errno::ENOENT));
        assert_eq!(sockets.set(&index(0), SOCKET, LOCK), Err(Errno::EINVAL));
        assert_eq!(sockets.set(&index(0), 0, ANY), Err(Errno::EINVAL));
        assert_eq!(sockets.set(&index(0), SOCKET, NOEXIST), Ok(()));
        assert_eq!(sockets.get(&index(0)), Some(SOCKET));
        let again = sockets.set(&index(0), SOCKET + 64, NOEXIST);
        assert_eq!(again, Err(Errno::EEXIST), "{map_type}");
        assert_eq!(sockets.set(&index(0), SOCKET + 64, ANY), Ok(()));
        assert_eq!(map.remove(&index(0)), Ok(()));
        assert_eq!(sockets.get(&index(0)), None);
    }
}

#[test]
fn user_space_reads_what_names_a_socket_where_there_is_room() {
    let map8 = map(MapType::Sockmap, 4, 8, 1);
    let Kind::Sockets(sockets) = map8.kind() else {
        panic!("no sockmap");
    };
    assert_eq!(map8.read(&index(0)), Err(Errno::ENOENT));
    sockets.set(&index(0), SOCKET, ANY).unwrap();
    assert_eq!(map8.read(&index(0)), Ok(SOCKET.to_le_bytes().to_vec()));
    assert_eq!(
        map8.write(&index(0), &[9, 0, 0, 0, 0, 0, 0, 0], ANY),
        Err(Errno::EBADF)
    );
    assert_eq!(map8.write(&index(0), &[0xff; 8], ANY), Err(Errno::EINVAL));
    let map4 = map(MapType::Sockmap, 4, 4, 1);
    assert_eq!(map4.read(&index(0)), Err(Errno::ENOSPC));
    let xsk = map(MapType::Xskmap, 4, 4, 1);
    assert_eq!(xsk.read(&index(0)), Err(Errno::EOPNOTSUPP));
    assert_eq!(xsk.write(&PAST, &[0; 4], ANY), Err(Errno::E2BIG));
    assert_eq!(
        xsk.write(&index(0), &[9, 0, 0, 0], LOCK),
        Err(Errno::EINVAL)
    );
}

#[test]
fn a_sockhash_is_full_and_walked() {
    let map = map(MapType::Sockhash, 2, 8, 2);
    let Kind::Sockets(sockets) = map.kind() else {
        panic!("no sockhash");
    };
    for key in [[1, 0], [2, 0]] {
        assert_eq!(sockets.set(&key, SOCKET, ANY), Ok(()));
    }
    assert_eq!(sockets.set(&[3, 0], SOCKET, ANY), Err(Errno::E2BIG));
    assert_eq!(keys(&*map), [[1, 0], [2, 0]]);
    assert_eq!(
        map.next_key(Some(&[9, 9])),
        Ok(vec![1, 0]),
        "a key that is not there"
    );
}

#[test]
fn a_socket_is_in_a_reuseport_array_once() {
    let map = map(MapType::ReuseportSockarray, 4, 8, 2);
    let Kind::Sockets(sockets) = map.kind() else {
        panic!("no reuseport array");
    };
    assert_eq!(sockets.set(&index(0), SOCKET, ANY), Ok(()));
    assert_eq!(sockets.set(&index(0), SOCKET, NOEXIST), Err(Errno::EEXIST));
    assert_eq!(sockets.set(&index(0), SOCKET, EXIST), Err(Errno::EBUSY));
    assert_eq!(sockets.set(&index(1), SOCKET, ANY), Err(Errno::EBUSY));
    assert_eq!(sockets.lookup_acquires(), None);
}

#[test]
fn a_devmap_takes_numbers_of_devices() {
    let map = map(MapType::Devmap, 4, 4, 3);
    let lo = 1u32.to_le_bytes();
    assert_eq!(map.read(&index(0)), Err(Errno::ENOENT));
    assert_eq!(map.write(&index(0), &lo, ANY), Ok(()));
    for flags in [NOEXIST, NOEXIST | LOCK] {
        let errno = if flags == NOEXIST {
            Errno::EEXIST
        } else {
            Errno::EINVAL
        };
        assert_eq!(map.write(&index(1), &lo, flags), Err(errno));
    }
    assert_eq!(map.write(&index(0), &lo, EXIST), Ok(()));
    assert_eq!(map.write(&PAST, &lo, NOEXIST), Err(Errno::E2BIG));
    assert_eq!(map.read(&index(0)), Ok(lo.to_vec()));
    assert_eq!(
        map.lookup(0, &index(0)),
        Ok(Some(0)),
        "a program sees it, too"
    );
    assert_eq!(map.lookup(0, &index(1)), Ok(None));
    assert_eq!(map.lookup(0, &PAST), Ok(None));
    // Device 0 is an empty slot.
    assert_eq!(map.write(&index(0), &[0; 4], ANY), Ok(()));
    assert_eq!(map.read(&index(0)), Err(Errno::ENOENT));
    assert_eq!(
        (map.remove(&index(0)), map.remove(&index(0))),
        (Ok(()), Ok(()))
    );
    assert_eq!(map.remove(&PAST), Err(Errno::EINVAL));
    assert_eq!(map.write(&index(0), &[0xff; 4], ANY), Err(Errno::EINVAL));
    assert_eq!(keys(&*map).len(), 3, "every index is a key");
}

#[test]
fn a_devmap_hash_has_the_keys_that_are_in() {
    let map = map(MapType::DevmapHash, 4, 8, 2);
    let Kind::Devices(devices) = map.kind() else {
        panic!("no devmap");
    };
    assert_eq!(map.write(&PAST, &[0; 8], ANY), Err(Errno::EINVAL));
    assert_eq!(devices.set(&PAST, 7, Some(ProgramHandle(2)), ANY), Ok(()));
    assert_eq!(devices.set(&PAST, 8, None, NOEXIST), Err(Errno::EEXIST));
    assert_eq!(devices.set(&index(1), 8, None, EXIST), Ok(()), "creates");
    assert_eq!(devices.set(&index(2), 8, None, ANY), Err(Errno::E2BIG));
    let [first, second] = devices.all()[..] else {
        panic!("{:?}", devices.all());
    };
    assert_eq!(first, RedirectValue::new(7, Some(ProgramHandle(2))));
    assert_eq!(second, RedirectValue::new(8, None));
    assert_eq!(
        map.read(&PAST),
        Ok(vec![7, 0, 0, 0, 3, 0, 0, 0]),
        "an id is above 0"
    );
    let element = map.lookup(0, &PAST).unwrap();
    assert!(element.is_some_and(|element| map.slab().unwrap().is_live(element)));
    assert_eq!(
        (map.remove(&PAST), map.remove(&PAST)),
        (Ok(()), Err(Errno::ENOENT))
    );
}

#[test]
fn programs_of_values_have_no_descriptor() {
    let devices = map(MapType::Devmap, 4, 8, 3);
    let with = |fd: u32| [1u32.to_le_bytes(), fd.to_le_bytes()].concat();
    assert_eq!(devices.write(&index(0), &with(99), ANY), Err(Errno::EINVAL));
    assert_eq!(
        devices.write(&index(0), &with(99), NOEXIST),
        Err(Errno::EEXIST)
    );
    assert_eq!(devices.write(&PAST, &with(99), ANY), Err(Errno::E2BIG));
    assert_eq!(devices.read(&index(0)), Err(Errno::ENOENT));
    assert_eq!(
        devices.write(&index(0), &with(u32::MAX), ANY),
        Ok(()),
        "-1: none"
    );
    assert_eq!(devices.read(&index(0)), Ok(vec![1, 0, 0, 0, 0, 0, 0, 0]));
    let small = map(MapType::Devmap, 4, 4, 3);
    let Kind::Devices(small) = small.kind() else {
        panic!("no devmap");
    };
    let set = small.set(&index(0), 1, Some(ProgramHandle(0)), ANY);
    assert_eq!(set, Err(Errno::EINVAL));
}

#[test]
fn a_cpumap_takes_lengths_of_queues() {
    let map = map(MapType::Cpumap, 4, 8, 3);
    let Kind::Cpus(cpus) = map.kind() else {
        panic!("no cpumap");
    };
    let queue = |len: u32, fd: u32| [len.to_le_bytes(), fd.to_le_bytes()].concat();
    assert_eq!(map.write(&index(0), &queue(192, 0), ANY), Ok(()));
    assert_eq!(map.read(&index(0)), Ok(queue(192, 0)));
    assert_eq!(
        map.write(&index(0), &queue(192, 0), NOEXIST),
        Err(Errno::EEXIST)
    );
    assert_eq!(
        map.write(&index(0), &queue(16385, 0), ANY),
        Err(Errno::EOVERFLOW)
    );
    assert_eq!(
        map.write(&index(2), &queue(5, 0), ANY),
        Err(Errno::ENODEV),
        "two CPUs"
    );
    assert_eq!(map.write(&PAST, &queue(5, 0), ANY), Err(Errno::E2BIG));
    assert_eq!(map.write(&index(1), &queue(5, 99), ANY), Err(Errno::ENOMEM));
    assert_eq!(map.read(&index(1)), Err(Errno::ENOENT));
    assert_eq!(cpus.set(1, 5, Some(ProgramHandle(0)), ANY), Ok(()));
    let there = RedirectValue::new(5, Some(ProgramHandle(0)));
    assert_eq!(cpus.get(1), Some(there));
    assert_eq!(map.lookup(0, &index(0)), Err(Errno::EOPNOTSUPP));
    assert_eq!(
        (map.remove(&index(0)), map.remove(&index(0))),
        (Ok(()), Ok(()))
    );
    assert_eq!(map.remove(&PAST), Err(Errno::EINVAL));
    assert_eq!(cpus.get(0), None);
}

#[test]
fn a_table_of_functions_keeps_its_value_and_its_programs() {
    use super::super::Function;
    let map = map(MapType::StructOps, 4, 12, 1);
    let Kind::StructOps(table) = map.kind() else {
        panic!("no struct_ops");
    };
    assert_eq!(map.read(&index(0)), Ok(vec![0; 12]));
    assert_eq!(map.write(&index(0), &[7; 12], ANY), Ok(()));
    assert_eq!(map.write(&index(0), &[7; 12], EXIST), Err(Errno::EINVAL));
    assert_eq!(map.write(&index(1), &[7; 12], ANY), Err(Errno::E2BIG));
    assert_eq!(map.read(&index(0)), Ok(vec![7; 12]));
    assert_eq!(map.remove(&index(0)), Err(Errno::ENOENT));
    let function = |member: &str, index, program| Function {
        member: member.into(),
        index,
        program: ProgramHandle(program),
    };
    table.set(function("release", 4, 1));
    table.set(function("init", 1, 2));
    table.set(function("init", 1, 3));
    let members: Vec<_> = table.functions().into_iter().map(|f| f.member).collect();
    assert_eq!(members, ["init", "release"]);
    assert_eq!(table.program("init"), Some(ProgramHandle(3)));
    assert_eq!(table.program("exit"), None);
}
