//! Helpers on sockmaps and sockhashes (`net/core/sock_map.c`, `net/core/filter.c`).

use std::sync::Arc;

use super::redirect;
use crate::spec::{RedirectFlags, UpdateFlags};
use crate::util::Errno;
use crate::vm::machine::{Bytes, Call, HelperProblem, RedirectTarget, Returned, unfit};
use crate::vm::maps::{Kind, Map, Sockets};

/// `SK_DROP`.
const DROP: u64 = 0;
/// `SK_PASS`.
const PASS: u64 = 1;

/// The map in argument 2.
fn map(call: &Call<'_>) -> Result<Arc<dyn Map>, HelperProblem> {
    let (_, map) = call.map(2)?;
    Ok(map)
}

/// The sockets of a map.
fn sockets(map: &dyn Map) -> Result<&Sockets, HelperProblem> {
    match map.kind() {
        Kind::Sockets(sockets) => Ok(sockets),
        _ => Err(unfit(2, map)),
    }
}

/// Redirects the packet or message to the socket under a key; drops it if there is none.
fn send(call: &mut Call<'_>, map: &dyn Map, key: &[u8]) -> Returned {
    let flags = call.arg(4);
    if RedirectFlags::from_bits_retain(flags) - RedirectFlags::INGRESS != RedirectFlags::empty() {
        return Ok(DROP);
    }
    let Some(socket) = sockets(map)?.get(key) else {
        return Ok(DROP);
    };
    let target = RedirectTarget::Socket(socket);
    redirect::record(call, Some(&map.def().name), target, flags);
    Ok(PASS)
}

/// Redirects by index: `(context, map, index, flags)`.
fn by_index(call: &mut Call<'_>) -> Returned {
    let map = map(call)?;
    let index = call.arg_u32(3).to_le_bytes();
    send(call, &*map, &index)
}

/// Redirects by key: `(context, map, key, flags)`.
fn by_key(call: &mut Call<'_>) -> Returned {
    let map = map(call)?;
    let key = key(call, &*map)?;
    send(call, &*map, &key)
}

/// The key at the address in argument 3.
fn key(call: &Call<'_>, map: &dyn Map) -> Result<Bytes, HelperProblem> {
    call.read(3, map.def().key_size as usize)
}

pub(super) fn sk_redirect_map(call: &mut Call<'_>) -> Returned {
    by_index(call)
}

pub(super) fn msg_redirect_map(call: &mut Call<'_>) -> Returned {
    by_index(call)
}

pub(super) fn sk_redirect_hash(call: &mut Call<'_>) -> Returned {
    by_key(call)
}

pub(super) fn msg_redirect_hash(call: &mut Call<'_>) -> Returned {
    by_key(call)
}

/// Stores the context's socket in the map: `(context, map, key, flags)`.
fn update(call: &mut Call<'_>) -> Returned {
    let map = map(call)?;
    let key = key(call, &*map)?;
    let Some(socket) = call.machine.event_socket_address() else {
        return Err(call.wrong(1, "a context with a socket"));
    };
    let flags = UpdateFlags::from_bits_retain(call.arg(4));
    let updated = sockets(&*map)?.update(&key, socket, flags);
    Ok(updated.map_or_else(Errno::to_ret, |()| 0))
}

pub(super) fn sock_map_update(call: &mut Call<'_>) -> Returned {
    update(call)
}

pub(super) fn sock_hash_update(call: &mut Call<'_>) -> Returned {
    update(call)
}

/// `bpf_sk_select_reuseport(context, map, key, flags)`: selects the socket that gets the
/// connection or packet. Any socket of the map is accepted: membership in the reuseport group
/// is not checked.
pub(super) fn sk_select_reuseport(call: &mut Call<'_>) -> Returned {
    let map = map(call)?;
    let key = key(call, &*map)?;
    let sockets = sockets(&*map)?;
    if call.arg(4) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let Some(socket) = sockets.get(&key) else {
        return Ok(Errno::ENOENT.to_ret());
    };
    let target = RedirectTarget::Socket(socket);
    redirect::record(call, Some(&map.def().name), target, 0);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;
    use crate::spec::{MapType, ProgType};
    use crate::vm::events::Event;
    use crate::vm::machine::Output;

    const SOCKET: u64 = 0xffff_8881_0000_0040;

    /// A map with a socket under key 1; returns the addresses of the map and the key.
    fn one(bench: &mut Bench, map_type: MapType) -> (u64, u64) {
        let (address, _, map) = bench.map(map_type, 4, 8, 4);
        let Kind::Sockets(sockets) = map.kind() else {
            panic!("no map of sockets");
        };
        let any = UpdateFlags::empty();
        sockets.set(&1u32.to_le_bytes(), SOCKET, any).unwrap();
        (address, bench.memory(&1u32.to_le_bytes()))
    }

    fn sent(bench: &mut Bench) -> usize {
        let outputs = bench.machine.take_outputs();
        let to_socket = |output: &&Output| {
            let target = RedirectTarget::Socket(SOCKET);
            matches!(output, Output::Redirect(redirect) if redirect.target == target)
        };
        outputs.iter().filter(to_socket).count()
    }

    #[test]
    fn packets_and_messages_go_to_sockets_that_are_there() {
        let mut bench = Bench::new();
        let (map, key) = one(&mut bench, MapType::Sockmap);
        for helper in [id::sk_redirect_map, id::msg_redirect_map] {
            assert_eq!(bench.ok(helper, [0, map, 1, 0]), PASS);
            assert_eq!(
                bench.ok(helper, [0, map, 1, 1]),
                PASS,
                "to its receive queue"
            );
            assert_eq!(bench.ok(helper, [0, map, 1, 2]), DROP);
            assert_eq!(bench.ok(helper, [0, map, 2, 0]), DROP);
            assert_eq!(sent(&mut bench), 2);
        }
        let (hash, _) = one(&mut bench, MapType::Sockhash);
        let other = bench.memory(&[9; 4]);
        for helper in [id::sk_redirect_hash, id::msg_redirect_hash] {
            assert_eq!(bench.ok(helper, [0, hash, key, 0]), PASS);
            assert_eq!(bench.ok(helper, [0, hash, other, 0]), DROP);
            assert_eq!(sent(&mut bench), 1);
        }
        let (array, ..) = bench.map(MapType::Array, 4, 8, 4);
        assert!(bench.call(id::sk_redirect_map, [0, array, 1, 0]).is_err());
    }

    #[test]
    fn a_listener_is_chosen_by_key() {
        let mut bench = Bench::new();
        let (map, key) = one(&mut bench, MapType::ReuseportSockarray);
        let other = bench.memory(&[0; 4]);
        assert_eq!(bench.ok(id::sk_select_reuseport, [0, map, key, 0]), 0);
        assert_eq!(sent(&mut bench), 1);
        let select = [0, map, other, 0];
        assert_eq!(bench.errno(id::sk_select_reuseport, select), Errno::ENOENT);
        let select = [0, map, key, 1];
        assert_eq!(bench.errno(id::sk_select_reuseport, select), Errno::EINVAL);
    }

    #[test]
    fn a_look_up_gives_a_socket_and_an_update_takes_one() {
        let mut bench = Bench::new();
        let (map, key) = one(&mut bench, MapType::Sockhash);
        assert_eq!(bench.ok(id::map_lookup_elem, [map, key]), SOCKET);
        let other = bench.memory(&[9; 4]);
        assert_eq!(bench.ok(id::map_lookup_elem, [map, other]), 0);
        assert_eq!(bench.ok(id::map_update_elem, [map, other, SOCKET, 0]), 0);
        let update = [map, other, SOCKET, 1];
        assert_eq!(bench.errno(id::map_update_elem, update), Errno::EEXIST);
        assert_eq!(bench.ok(id::map_delete_elem, [map, other]), 0);
        let delete = [map, other];
        assert_eq!(bench.errno(id::map_delete_elem, delete), Errno::ENOENT);
    }

    #[test]
    fn the_contexts_socket_goes_into_a_map() {
        let mut bench = Bench::on(ProgType::SchedCls, &Event::packet([0; 64]));
        let (map, _) = one(&mut bench, MapType::Sockmap);
        let (context, key) = (bench.context(), bench.memory(&[0; 4]));
        assert_eq!(bench.ok(id::sock_map_update, [context, map, key, 0]), 0);
        let again = [context, map, key, 1];
        assert_eq!(bench.errno(id::sock_map_update, again), Errno::EEXIST);
        let sk = bench.machine.current().unwrap().placed.other("sk").unwrap();
        assert_eq!(bench.ok(id::map_lookup_elem, [map, key]), sk.register());
        assert!(
            Bench::new()
                .call(id::sock_map_update, [0, 0, 0, 0])
                .is_err()
        );
    }
}
