//! Look-up, update and deletion of map elements (`kernel/bpf/helpers.c`).

use std::sync::Arc;

use super::super::fault::HelperProblem;
use super::super::handle::MapHandle;
use super::super::maps::{Kind, Map};
use super::super::memory::{Region, Rights, SharedBytes};
use super::call::{Call, unfit};
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// `r0` for what an operation returned; `EOPNOTSUPP` means that programs can't do
/// it with this type of map, which the verifier would have said.
fn finish(map: &dyn Map, result: std::result::Result<(), Errno>) -> Result {
    match result {
        Ok(()) => Ok(0),
        Err(Errno::EOPNOTSUPP) => Err(unfit(1, map)),
        Err(errno) => Ok(errno.to_ret()),
    }
}

/// The map in argument 1, which the program is about to change.
fn changed_map(call: &Call<'_>) -> std::result::Result<Arc<dyn Map>, HelperProblem> {
    let (_, map) = call.map(1)?;
    if map.def().flags.programs_write() {
        return Ok(map);
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

/// The address that a look-up gives a program; 0 where nothing is found.
fn element_address(call: &Call<'_>, map: MapHandle, element: Option<usize>) -> u64 {
    let address = element.and_then(|element| call.machine.value_address(map, element));
    address.unwrap_or_default()
}

pub(super) fn lookup_elem(call: &mut Call<'_>) -> Result {
    let cpu = call.machine.world.cpu();
    look_up(call, cpu)
}

/// An element as a program on `cpu` finds it.
fn look_up(call: &Call<'_>, cpu: u32) -> Result {
    let handle = call.map_handle(1)?;
    let map = call.map_of(1, handle)?;
    let key = call.read(2, map.def().key_size as usize)?;
    if let Kind::MapOfMaps(outer) = map.kind() {
        let inner = outer
            .get(&key)
            .and_then(|inner| call.machine.map_address(inner));
        return Ok(inner.unwrap_or_default());
    }
    match map.lookup(cpu, &key) {
        Ok(element) => Ok(element_address(call, handle, element)),
        Err(_) => Err(unfit(1, &**map)),
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
    let map = changed_map(call)?;
    let key = call.read(2, map.def().key_size as usize)?;
    let value = call.read(3, map.def().value_size as usize)?;
    let cpu = call.machine.world.cpu();
    finish(&*map, map.update(cpu, &key, &value, flags(call.arg(4))))
}

pub(super) fn delete_elem(call: &mut Call<'_>) -> Result {
    let map = changed_map(call)?;
    let key = call.read(2, map.def().key_size as usize)?;
    finish(&*map, map.delete(&key))
}

pub(super) fn push_elem(call: &mut Call<'_>) -> Result {
    let map = changed_map(call)?;
    let (size, flags) = (map.def().value_size as usize, flags(call.arg(3)));
    match map.kind() {
        Kind::Queue(queue) => finish(&*map, queue.push(&call.read(2, size)?, flags)),
        Kind::Bloom(bloom) => finish(&*map, bloom.push(&call.read(2, size)?, flags)),
        _ => Err(unfit(1, &*map)),
    }
}

pub(super) fn pop_elem(call: &mut Call<'_>) -> Result {
    let map = changed_map(call)?;
    match map.kind() {
        Kind::Queue(queue) => {
            // Only what can be written is taken.
            let size = map.def().value_size as usize;
            call.check(2, size, super::super::memory::AccessKind::Write)?;
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

/// Writes a value to where argument 2 points; zeros where there is none.
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

/// Calls back with each element that is there when the walk begins and still is
/// when it comes by. Returns how many callbacks ran; one that returns anything but
/// 0 was the last.
pub(super) fn for_each_elem(call: &mut Call<'_>) -> Result {
    let (handle, map) = call.map(1)?;
    if !walkable(map.def().map_type) {
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

/// Types that have a `map_for_each_callback` and are implemented here.
const fn walkable(map_type: MapType) -> bool {
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
