//! Helpers on maps (`kernel/bpf/helpers.c`, `kernel/bpf/map_iter.c`,
//! `kernel/bpf/hashtab.c`).

use std::sync::Arc;

use smallvec::SmallVec;

use super::Call;
use crate::spec::{UpdateFlags, limits};
use crate::util::Errno;
use crate::vm::MapHandle;
use crate::vm::fault::HelperProblem;
use crate::vm::maps::{Kind, Map, Queue};

type Result<T, E = HelperProblem> = std::result::Result<T, E>;

/// What a helper returns for an operation that succeeds with 0.
fn status(result: std::result::Result<(), Errno>) -> u64 {
    result.map_or_else(Errno::to_ret, |()| 0)
}

impl Call<'_> {
    /// A map that has an implementation.
    fn working_map(&self, n: usize) -> Result<(MapHandle, Arc<dyn Map>)> {
        let (handle, map) = self.map(n)?;
        if map.is_placeholder() {
            return Err(HelperProblem::Other(format!(
                "map {} is of type {}, which has no implementation here",
                map.def().name,
                map.def().map_type
            )));
        }
        Ok((handle, map))
    }

    /// The key that argument `n` points to.
    fn key(&self, n: usize, map: &dyn Map) -> Result<SmallVec<[u8; 32]>> {
        let mut key = SmallVec::from_elem(0, map.def().key_size as usize);
        self.read_into(n, &mut key)?;
        Ok(key)
    }

    /// The address of an element, or null.
    fn element(&self, map: MapHandle, element: Option<usize>) -> u64 {
        element
            .and_then(|element| self.machine.value_address(map, element))
            .unwrap_or(0)
    }

    fn queue<'m>(&self, n: usize, map: &'m dyn Map) -> Result<&'m Queue> {
        match map.kind() {
            Kind::Queue(queue) => Ok(queue),
            _ => Err(self.wrong(n, "a queue, stack or bloom filter")),
        }
    }
}

/// `void *map_lookup_elem(map, key)`.
pub fn lookup_elem(call: &mut Call<'_>) -> Result<u64> {
    look_up(call, call.machine.world.cpu())
}

/// `void *map_lookup_percpu_elem(map, key, cpu)`.
pub fn lookup_percpu_elem(call: &mut Call<'_>) -> Result<u64> {
    match u32::try_from(call.arg(3) & 0xffff_ffff) {
        Ok(cpu) if cpu < call.machine.world.cpus() => look_up(call, cpu),
        _ => Ok(0),
    }
}

fn look_up(call: &Call<'_>, cpu: u32) -> Result<u64> {
    let (handle, map) = call.working_map(1)?;
    let key = call.key(2, &*map)?;
    if let Kind::MapOfMaps(outer) = map.kind() {
        let inner = outer
            .get(&key)
            .and_then(|inner| call.machine.map_address(inner));
        return Ok(inner.unwrap_or(0));
    }
    let element = map.lookup(cpu, &key).unwrap_or(None);
    Ok(call.element(handle, element))
}

/// `long map_update_elem(map, key, value, flags)`.
pub fn update_elem(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.working_map(1)?;
    let key = call.key(2, &*map)?;
    let value = call.read(3, map.def().value_size as usize)?;
    let flags = UpdateFlags::from_bits(call.arg(4)).ok_or(Errno::EINVAL);
    let cpu = call.machine.world.cpu();
    Ok(status(
        flags.and_then(|flags| map.update(cpu, &key, &value, flags)),
    ))
}

/// `long map_delete_elem(map, key)`.
pub fn delete_elem(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.working_map(1)?;
    let key = call.key(2, &*map)?;
    Ok(status(map.delete(&key)))
}

/// `long map_push_elem(map, value, flags)`.
pub fn push_elem(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.working_map(1)?;
    let value = call.read(2, map.def().value_size as usize)?;
    let queue = call.queue(1, &*map)?;
    let flags = UpdateFlags::from_bits(call.arg(3)).ok_or(Errno::EINVAL);
    Ok(status(flags.and_then(|flags| queue.push(&value, flags))))
}

/// `long map_pop_elem(map, value)`.
pub fn pop_elem(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.working_map(1)?;
    let taken = call.queue(1, &*map)?.pop();
    give(call, &*map, taken)
}

/// `long map_peek_elem(map, value)`.
pub fn peek_elem(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.working_map(1)?;
    let asked = call.read(2, map.def().value_size as usize)?;
    let seen = call.queue(1, &*map)?.peek(&asked);
    give(call, &*map, seen)
}

/// Writes a value to where argument 2 points; zeros where there is none.
fn give(
    call: &mut Call<'_>,
    map: &dyn Map,
    value: std::result::Result<Vec<u8>, Errno>,
) -> Result<u64> {
    match value {
        Ok(value) => call.write(2, &value).map(|()| 0),
        Err(errno) => {
            call.write(2, &vec![0; map.def().value_size as usize])?;
            Ok(errno.to_ret())
        }
    }
}

/// `long for_each_map_elem(map, callback, ctx, flags)`: the callback gets the map,
/// a key, the value and `ctx`; it goes on while it returns 0.
pub fn for_each_elem(call: &mut Call<'_>) -> Result<u64> {
    let (handle, map) = call.working_map(1)?;
    if call.arg(4) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (map_address, context) = (call.arg(1), call.arg(3));
    let cpu = call.machine.world.cpu();
    let mut seen = 0;
    let mut last: Option<Vec<u8>> = None;
    while let Ok(key) = map.next_key(last.as_deref()) {
        let element = map.lookup(cpu, &key).unwrap_or(None);
        let value = call.element(handle, element);
        last = Some(key.clone());
        if value == 0 {
            continue;
        }
        seen += 1;
        let key = call.lend("key of for_each_map_elem", &key)?;
        let result = call.call_back(2, [map_address, key.register(), value, context, 0]);
        call.machine.space.remove(key);
        if result? != 0 || seen >= u64::from(limits::MAX_LOOPS) {
            break;
        }
    }
    Ok(seen)
}
