//! Lookup, update and deletion of map elements (`kernel/bpf/helpers.c`).

use std::sync::Arc;

use super::super::kfuncs;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;
use crate::vm::machine::{Bytes, Call, HelperProblem, unfit};
use crate::vm::maps::{Kind, Map, MapHandle};
use crate::vm::memory::{AccessKind, Region, Rights, SharedBytes};

type Result = std::result::Result<u64, HelperProblem>;

/// `r0` for an operation's result. `EOPNOTSUPP` means that programs can't use the operation
/// on this map type; the verifier would have rejected the program.
fn finish(map: &dyn Map, result: std::result::Result<(), Errno>) -> Result {
    match result {
        Ok(()) => Ok(0),
        Err(Errno::EOPNOTSUPP) => Err(unfit(1, map)),
        Err(errno) => Ok(errno.to_ret()),
    }
}

/// The map in argument 1; an error if programs may not write it.
fn changed_map(call: &Call<'_>) -> std::result::Result<(MapHandle, Arc<dyn Map>), HelperProblem> {
    let (handle, map) = call.map(1)?;
    if map.def().flags.programs_write() {
        return Ok((handle, map));
    }
    Err(HelperProblem::MapRights {
        arg: 1,
        map: map.def().name.clone(),
        rights: "read-only",
    })
}

const fn flags(bits: u64) -> UpdateFlags {
    UpdateFlags::from_bits_retain(bits)
}

/// The address that a lookup returns; 0 if there is no element.
fn element_address(call: &Call<'_>, map: MapHandle, element: Option<usize>) -> u64 {
    let address = element.and_then(|element| call.machine.value_address(map, element));
    address.unwrap_or_default()
}

pub(super) fn lookup_elem(call: &mut Call<'_>) -> Result {
    let cpu = call.machine.world.cpu();
    look_up(call, cpu)
}

/// Looks up an element for a program on `cpu`.
fn look_up(call: &mut Call<'_>, cpu: u32) -> Result {
    let handle = call.map_handle(1)?;
    let map = call
        .machine
        .map(handle)
        .ok_or_else(|| call.wrong(1, "a map"))?;
    let mut key = Bytes::new();
    call.read_into(2, map.def().key_size as usize, &mut key)?;
    match map.lookup(cpu, &key) {
        Ok(element) => Ok(element_address(call, handle, element)),
        Err(_) => object_under(call, handle, &key),
    }
}

/// Looks up an object in a map of maps or sockets.
fn object_under(call: &mut Call<'_>, handle: MapHandle, key: &[u8]) -> Result {
    let map = call.map_of(1, handle)?.clone();
    match map.kind() {
        Kind::MapOfMaps(outer) => {
            let inner = outer.get(key);
            let address = inner.and_then(|inner| call.machine.map_address(inner));
            Ok(address.unwrap_or_default())
        }
        Kind::Sockets(sockets) => {
            let is_held = sockets.lookup_acquires().ok_or_else(|| unfit(1, &*map))?;
            let socket = sockets.get(key).unwrap_or_default();
            if is_held {
                call.machine.acquire_socket_at(socket);
            }
            Ok(socket)
        }
        _ => Err(unfit(1, &*map)),
    }
}

pub(super) fn lookup_percpu_elem(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(1)?;
    if !map.def().map_type.info().per_cpu {
        return Err(unfit(1, &*map));
    }
    let cpu = call.arg_u32(3);
    if cpu >= call.machine.world.cpus() {
        return Ok(0);
    }
    look_up(call, cpu)
}

pub(super) fn update_elem(call: &mut Call<'_>) -> Result {
    let (handle, map) = changed_map(call)?;
    let (mut key, mut value) = (Bytes::new(), Bytes::new());
    call.read_into(2, map.def().key_size as usize, &mut key)?;
    if let Kind::Sockets(sockets) = map.kind() {
        let socket = call.machine.socket_owner(call.arg(3));
        let socket = socket.unwrap_or(call.arg(3));
        let updated = sockets.update(&key, socket, flags(call.arg(4)));
        return finish(&*map, updated);
    }
    call.read_into(3, map.def().value_size as usize, &mut value)?;
    let (cpu, flags) = (call.machine.world.cpu(), flags(call.arg(4)));
    if flags.contains(UpdateFlags::LOCK) && !call.machine.run.locks.is_empty() {
        let problem = "the program holds a lock: BPF_F_LOCK may deadlock";
        return Err(HelperProblem::Other(problem.into()));
    }
    if !flags.contains(UpdateFlags::NOEXIST) && !flags.contains(UpdateFlags::LOCK) {
        free_owned(call, handle, &*map, &key, Some(cpu))?;
    }
    finish(&*map, map.update(cpu, &key, &value, flags))
}

pub(super) fn delete_elem(call: &mut Call<'_>) -> Result {
    let (handle, map) = changed_map(call)?;
    let key = call.read(2, map.def().key_size as usize)?;
    free_owned(call, handle, &*map, &key, None)?;
    finish(&*map, map.delete(&key))
}

/// Frees the objects that a value owns before it is replaced (on one CPU or all) or deleted
/// (`bpf_obj_free_fields`). The map itself only zeroes these fields.
fn free_owned(
    call: &mut Call<'_>,
    handle: MapHandle,
    map: &dyn Map,
    key: &[u8],
    cpu: Option<u32>,
) -> std::result::Result<(), HelperProblem> {
    let special = &map.def().special;
    if special.is_empty() {
        return Ok(());
    }
    let per_cpu = map.def().map_type.info().per_cpu;
    let all = if per_cpu { map.base().cpus() } else { 1 };
    let cpus = cpu.map_or(0..all, |cpu| cpu..cpu.saturating_add(1));
    for cpu in cpus {
        let element = map.find(cpu, key).ok().flatten();
        let at = element.and_then(|element| call.machine.value_address(handle, element));
        if let Some(at) = at {
            kfuncs::free_fields(call.machine, special, at)?;
        }
    }
    Ok(())
}

pub(super) fn push_elem(call: &mut Call<'_>) -> Result {
    let (_, map) = changed_map(call)?;
    let (size, flags) = (map.def().value_size as usize, flags(call.arg(3)));
    match map.kind() {
        Kind::Queue(queue) => finish(&*map, queue.push(&call.read(2, size)?, flags)),
        Kind::Bloom(bloom) => finish(&*map, bloom.push(&call.read(2, size)?, flags)),
        _ => Err(unfit(1, &*map)),
    }
}

pub(super) fn pop_elem(call: &mut Call<'_>) -> Result {
    let (_, map) = changed_map(call)?;
    match map.kind() {
        Kind::Queue(queue) => {
            // Take an element only if the destination is writable.
            let size = map.def().value_size as usize;
            call.check(2, size, AccessKind::Write)?;
            give_value(call, queue.pop(), size)
        }
        _ => Err(unfit(1, &*map)),
    }
}

pub(super) fn peek_elem(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(1)?;
    let size = map.def().value_size as usize;
    match map.kind() {
        Kind::Queue(queue) => give_value(call, queue.peek(), size),
        Kind::Bloom(bloom) => {
            let there = bloom.contains(&call.read(2, size)?);
            Ok(if there { 0 } else { Errno::ENOENT.to_ret() })
        }
        _ => Err(unfit(1, &*map)),
    }
}

/// Writes a value to the address in argument 2; zeros if there is none.
fn give_value(
    call: &mut Call<'_>,
    value: std::result::Result<Vec<u8>, Errno>,
    size: usize,
) -> Result {
    match value {
        Ok(value) => call.write(2, &value).map(|()| 0),
        Err(errno) => call.write(2, &vec![0; size]).map(|()| errno.to_ret()),
    }
}

/// `bpf_for_each_map_elem(map, callback, context, flags)`: calls back with each element that
/// exists at the start and is still there when its turn comes. Returns the number of
/// callbacks; the iteration ends after a callback that returns nonzero.
pub(super) fn for_each_elem(call: &mut Call<'_>) -> Result {
    let (handle, map) = call.map(1)?;
    if !is_iterable(map.def().map_type) {
        return Err(unfit(1, &*map));
    }
    if call.arg(4) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let key_size = map.def().key_size as usize;
    let Ok(keys) = map.keys() else {
        return Err(unfit(1, &*map));
    };
    let key_bytes = Arc::new(SharedBytes::zeroed(key_size));
    let region = Region::bytes(format!("map key of {}", map.def().name), key_bytes.clone());
    let key_region = call
        .machine
        .space
        .insert(region.with_rights(Rights::Read))?;
    let mut run = || {
        let cpu = call.machine.world.cpu();
        let (map_pointer, context) = (call.arg(1), call.arg(3));
        let mut visited = 0;
        for key in keys.chunks_exact(key_size.max(1)) {
            let Ok(Some(element)) = map.find(cpu, key) else {
                continue;
            };
            key_bytes.write(0, key);
            let value = element_address(call, handle, Some(element));
            visited += 1;
            let args = [map_pointer, key_region.register(), value, context, 0];
            if call.call_back(2, args)? != 0 {
                break;
            }
        }
        Ok(visited)
    };
    let result = run();
    call.machine.space.remove(key_region);
    result
}

/// Map types that have a `map_for_each_callback` and are implemented here.
const fn is_iterable(map_type: MapType) -> bool {
    matches!(
        map_type,
        MapType::Array
            | MapType::PercpuArray
            | MapType::Hash
            | MapType::PercpuHash
            | MapType::LruHash
            | MapType::LruPercpuHash
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::testing::Bench;
    use super::*;
    use crate::program::MapDef;
    use crate::spec::helpers::id;
    use crate::spec::{MapFlags, UpdateFlags};

    const ENOENT: u64 = Errno::ENOENT.to_ret();
    const EINVAL: u64 = Errno::EINVAL.to_ret();
    const E2BIG: u64 = Errno::E2BIG.to_ret();
    const EEXIST: u64 = Errno::EEXIST.to_ret();

    #[test]
    fn an_array_gives_the_address_of_its_element() {
        let mut bench = Bench::new();
        let (map, handle, _) = bench.map(MapType::Array, 4, 8, 4);
        let (key, value) = (bench.memory(&[2, 0, 0, 0]), bench.memory(&[7; 8]));
        assert_eq!(bench.call(id::map_update_elem, [map, key, value, 0]), Ok(0));
        let found = bench.call(id::map_lookup_elem, [map, key]).unwrap();
        assert_eq!(Some(found), bench.machine.value_address(handle, 2));
        assert_eq!(bench.bytes(found, 8), [7; 8]);
        let past = bench.memory(&[4, 0, 0, 0]);
        assert_eq!(bench.call(id::map_lookup_elem, [map, past]), Ok(0));
        assert_eq!(
            bench.call(id::map_update_elem, [map, past, value, 0]),
            Ok(E2BIG)
        );
        assert_eq!(
            bench.call(id::map_update_elem, [map, key, value, 1]),
            Ok(EEXIST)
        );
        assert_eq!(
            bench.call(id::map_update_elem, [map, key, value, 3]),
            Ok(EINVAL)
        );
        assert_eq!(bench.call(id::map_delete_elem, [map, key]), Ok(EINVAL));
    }

    #[test]
    fn a_hash_grows_and_shrinks() {
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::Hash, 12, 8, 1);
        let (key, other) = (bench.memory(&[1; 12]), bench.memory(&[2; 12]));
        let value = bench.memory(&[7; 8]);
        assert_eq!(bench.call(id::map_lookup_elem, [map, key]), Ok(0));
        assert_eq!(bench.call(id::map_delete_elem, [map, key]), Ok(ENOENT));
        assert_eq!(
            bench.call(id::map_update_elem, [map, key, value, 2]),
            Ok(ENOENT)
        );
        assert_eq!(bench.call(id::map_update_elem, [map, key, value, 0]), Ok(0));
        let found = bench.call(id::map_lookup_elem, [map, key]).unwrap();
        assert_eq!(bench.bytes(found, 8), [7; 8]);
        assert_eq!(
            bench.call(id::map_update_elem, [map, other, value, 0]),
            Ok(E2BIG)
        );
        assert_eq!(
            bench.call(id::map_update_elem, [map, key, value, 4]),
            Ok(EINVAL)
        );
        assert_eq!(bench.call(id::map_delete_elem, [map, key]), Ok(0));
        assert!(bench.machine.space.take_stale().is_empty());
        bench.bytes(found, 8);
        assert_eq!(bench.machine.space.take_stale().len(), 1);
    }

    #[test]
    fn each_cpu_has_its_own_value() {
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::PercpuArray, 4, 8, 1);
        let (key, value) = (bench.memory(&[0; 4]), bench.memory(&[7; 8]));
        bench.machine.world.set_cpu(1);
        assert_eq!(bench.call(id::map_update_elem, [map, key, value, 0]), Ok(0));
        let own = bench.call(id::map_lookup_elem, [map, key]).unwrap();
        let first = bench
            .call(id::map_lookup_percpu_elem, [map, key, 0])
            .unwrap();
        assert_eq!(
            bench.call(id::map_lookup_percpu_elem, [map, key, 1]),
            Ok(own)
        );
        assert_eq!(bench.call(id::map_lookup_percpu_elem, [map, key, 4]), Ok(0));
        assert_eq!(
            (bench.bytes(own, 8), bench.bytes(first, 8)),
            (vec![7; 8], vec![0; 8])
        );
        let (array, ..) = bench.map(MapType::Array, 4, 8, 1);
        assert!(
            bench
                .call(id::map_lookup_percpu_elem, [array, key, 0])
                .is_err()
        );
    }

    #[test]
    fn queues_push_peek_and_pop() {
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::Stack, 0, 4, 1);
        let (value, to) = (bench.memory(&[7; 4]), bench.memory(&[0xee; 4]));
        assert_eq!(bench.call(id::map_pop_elem, [map, to]), Ok(ENOENT));
        assert_eq!(bench.bytes(to, 4), [0; 4]);
        assert_eq!(bench.call(id::map_push_elem, [map, value, 0]), Ok(0));
        assert_eq!(bench.call(id::map_push_elem, [map, value, 0]), Ok(E2BIG));
        assert_eq!(bench.call(id::map_push_elem, [map, value, 1]), Ok(EINVAL));
        assert_eq!(bench.call(id::map_peek_elem, [map, to]), Ok(0));
        assert_eq!(bench.bytes(to, 4), [7; 4]);
        assert!(bench.call(id::map_pop_elem, [map, to + 1]).is_err());
        assert_eq!(bench.call(id::map_pop_elem, [map, to]), Ok(0));
        assert_eq!(bench.call(id::map_peek_elem, [map, to]), Ok(ENOENT));

        let (bloom, ..) = bench.map(MapType::BloomFilter, 0, 4, 8);
        assert_eq!(bench.call(id::map_peek_elem, [bloom, value]), Ok(ENOENT));
        assert_eq!(bench.call(id::map_push_elem, [bloom, value, 0]), Ok(0));
        assert_eq!(bench.call(id::map_peek_elem, [bloom, value]), Ok(0));
        assert!(bench.call(id::map_pop_elem, [bloom, to]).is_err());
    }

    #[test]
    fn a_map_of_maps_gives_a_map() {
        let mut bench = Bench::new();
        let (inner, inner_handle, _) = bench.map(MapType::Array, 4, 8, 1);
        let mut def = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 2);
        def.inner = Some(Box::new(MapDef::new("inner", MapType::Array, 4, 8, 1)));
        let (outer, outer_handle, _) = bench.add(&def);
        let flags = UpdateFlags::empty();
        let set = |from, to| bench.machine.set_inner(from, &[1, 0, 0, 0], to, flags);
        assert_eq!(set(inner_handle, outer_handle), Err(Errno::EINVAL));
        assert_eq!(set(outer_handle, outer_handle), Err(Errno::EINVAL));
        assert_eq!(set(outer_handle, MapHandle(99)), Err(Errno::EBADF));
        assert_eq!(set(outer_handle, inner_handle), Ok(()));
        let (one, zero) = (bench.memory(&[1, 0, 0, 0]), bench.memory(&[0; 4]));
        assert_eq!(bench.call(id::map_lookup_elem, [outer, one]), Ok(inner));
        assert_eq!(bench.call(id::map_lookup_elem, [outer, zero]), Ok(0));
        assert!(bench.call(id::map_lookup_elem, [inner, zero]).unwrap() > 0);
    }

    #[test]
    fn what_the_verifier_would_reject_is_named() {
        let mut bench = Bench::new();
        let (array, ..) = bench.map(MapType::Array, 4, 8, 1);
        let (ring, ..) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let mut frozen = MapDef::new("ro", MapType::Array, 4, 8, 1);
        frozen.flags = MapFlags::RDONLY_PROG;
        let (frozen, ..) = bench.add(&frozen);
        let key = bench.memory(&[0; 4]);
        let mut said = |helper, args: [u64; 3]| bench.call(helper, args).unwrap_err().to_string();
        assert_eq!(
            said(id::map_lookup_elem, [key, key, 0]),
            "argument 1 is memory, expected a map"
        );
        assert_eq!(
            said(id::map_lookup_elem, [array, key + 1, 0]),
            "argument 2: reads 4 bytes at memory+1, 1 byte past its end (4 bytes)"
        );
        assert_eq!(
            said(id::map_lookup_elem, [ring, key, 0]),
            "argument 1 is map m of type ringbuf, which the function does not \
             support"
        );
        assert_eq!(
            said(id::map_delete_elem, [frozen, key, 0]),
            "argument 1 is map ro, which is read-only for programs"
        );
        assert!(said(id::map_push_elem, [array, key, 0]).contains("type array"));
        assert!(said(id::map_peek_elem, [array, key, 0]).contains("type array"));
        assert!(said(id::for_each_map_elem, [ring, key, 0]).contains("type ringbuf"));
    }

    #[test]
    fn a_walk_shows_each_element_once() {
        let mut bench = Bench::new();
        let (map, _, hash) = bench.map(MapType::Hash, 4, 4, 8);
        for n in 0..5 {
            hash.update(0, &[n; 4], &[n; 4], UpdateFlags::empty())
                .unwrap();
        }
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = seen.clone();
        bench.callback = Box::new(move |machine, [map_arg, key, value, context, last]| {
            assert_eq!((map_arg, context, last), (map, 55, 0));
            assert!(
                machine.space.store(key, 1, 0).is_err(),
                "keys are read-only"
            );
            let key = machine.space.read(key, 4).unwrap();
            assert_eq!(machine.space.read(value, 4).unwrap(), key);
            log.borrow_mut().push(key[0]);
            // Deletes the current element and a later one, replaces the first.
            hash.delete(&key).unwrap();
            let _ = hash.delete(&[3; 4]);
            Some(u64::from(key[0] == 2))
        });
        assert_eq!(
            bench.call(id::for_each_map_elem, [map, 1, 55, 1]),
            Ok(EINVAL)
        );
        assert_eq!(bench.call(id::for_each_map_elem, [map, 1, 55, 0]), Ok(3));
        assert_eq!(*seen.borrow(), [0, 1, 2]);
        assert_eq!(bench.call(id::for_each_map_elem, [map, 1, 55, 0]), Ok(1));
        assert_eq!(*seen.borrow(), [0, 1, 2, 4]);
        bench.callback = Box::new(|_, _| None);
        assert_eq!(bench.call(id::for_each_map_elem, [map, 1, 55, 0]), Ok(0));
    }
}
