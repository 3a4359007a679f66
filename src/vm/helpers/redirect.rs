//! Helpers that send a packet elsewhere (`net/core/filter.c`, `include/linux/filter.h`).
//! Nothing is sent here: what a test sees is the action that the program returns.

use super::call::{Call, Returned};
use super::packet;
use crate::spec::{MapType, ProgType};

/// `XDP_ABORTED`.
const XDP_ABORTED: u64 = 0;
/// `XDP_REDIRECT`.
const XDP_REDIRECT: u64 = 4;
/// `TC_ACT_SHOT`.
const TC_ACT_SHOT: u64 = 2;
/// `TC_ACT_REDIRECT`, also `BPF_REDIRECT`.
const TC_ACT_REDIRECT: u64 = 7;
/// Flags of `bpf_redirect_map` that are the action on a miss: aborted to sent back.
const ACTIONS: u64 = 3;
/// `BPF_F_BROADCAST`.
const BROADCAST: u64 = 1 << 3;
/// `BPF_F_EXCLUDE_INGRESS`.
const EXCLUDE_INGRESS: u64 = 1 << 4;
/// `BPF_F_INGRESS`.
const INGRESS: u64 = 1;

/// `(interface, flags)`: the action that means it.
pub(super) fn redirect(call: &mut Call<'_>) -> Returned {
    let flags = call.arg(2);
    Ok(match packet::prog_type(call) {
        Some(ProgType::Xdp) if flags != 0 => XDP_ABORTED,
        Some(ProgType::Xdp) => XDP_REDIRECT,
        _ if flags & !INGRESS != 0 => TC_ACT_SHOT,
        _ => TC_ACT_REDIRECT,
    })
}

/// `(interface, flags)`: no flags are known.
pub(super) fn redirect_peer(call: &mut Call<'_>) -> Returned {
    Ok(match call.arg(2) {
        0 => TC_ACT_REDIRECT,
        _ => TC_ACT_SHOT,
    })
}

/// `(interface, parameters, their size, flags)`: no flags are known, and the
/// parameters come whole or not at all.
pub(super) fn redirect_neigh(call: &mut Call<'_>) -> Returned {
    /// `sizeof(struct bpf_redir_neigh)`.
    const PARAMETERS: u32 = 20;
    let size = call.arg_u32(3);
    Ok(match (size, call.arg(4)) {
        (0 | PARAMETERS.., 0) => TC_ACT_REDIRECT,
        _ => TC_ACT_SHOT,
    })
}

/// `(map, key, flags)`: on a miss the action that the flags name.
pub(super) fn redirect_map(call: &mut Call<'_>) -> Returned {
    let (key, flags) = (call.arg_u32(2), call.arg(3));
    let handle = call.map_handle(1)?;
    let map = call
        .machine
        .map(handle)
        .ok_or_else(|| call.wrong(1, "a map"))?;
    let known = match map.def().map_type {
        MapType::Devmap | MapType::DevmapHash => ACTIONS | BROADCAST | EXCLUDE_INGRESS,
        MapType::Cpumap | MapType::Xskmap => ACTIONS,
        _ => return Err(call.wrong(1, "a map to redirect to")),
    };
    if flags & !known != 0 {
        return Ok(XDP_ABORTED);
    }
    let found = map.read(&key.to_le_bytes()).is_ok();
    Ok(match found || flags & BROADCAST != 0 {
        true => XDP_REDIRECT,
        false => flags & ACTIONS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::UpdateFlags;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn actions_are_those_of_the_programs_type() {
        for (prog_type, flags, want) in [
            (ProgType::Xdp, 0, XDP_REDIRECT),
            (ProgType::Xdp, 1, XDP_ABORTED),
            (ProgType::SchedCls, 0, TC_ACT_REDIRECT),
            (ProgType::SchedCls, 1, TC_ACT_REDIRECT),
            (ProgType::SchedCls, 2, TC_ACT_SHOT),
            (ProgType::SchedCls, 1 << 40, TC_ACT_SHOT),
        ] {
            let mut bench = Bench::on(prog_type, &Event::packet([0; 64]));
            assert_eq!(
                bench.ok(id::redirect, [1, flags]),
                want,
                "{prog_type:?} {flags}"
            );
        }
    }

    #[test]
    fn peers_and_neighbours_know_no_flags() {
        let mut bench = Bench::new();
        assert_eq!(bench.ok(id::redirect_peer, [1, 0]), TC_ACT_REDIRECT);
        assert_eq!(bench.ok(id::redirect_peer, [1, 1]), TC_ACT_SHOT);
        for (size, flags, want) in [
            (0, 0, TC_ACT_REDIRECT),
            (20, 0, TC_ACT_REDIRECT),
            (24, 0, TC_ACT_REDIRECT),
            (8, 0, TC_ACT_SHOT),
            (0, 1, TC_ACT_SHOT),
        ] {
            assert_eq!(bench.ok(id::redirect_neigh, [1, 0, size, flags]), want);
        }
    }

    /// A map whose only key is 1.
    fn only_one(bench: &mut Bench, map_type: MapType) -> u64 {
        let (address, _, map) = bench.map(map_type, 4, 4, 4);
        let one = 1u32.to_le_bytes();
        map.write(&one, &[0; 4], UpdateFlags::empty()).unwrap();
        address
    }

    #[test]
    fn a_miss_is_the_action_in_the_flags() {
        for (map_type, key, flags, want) in [
            (MapType::Devmap, 1, 0, XDP_REDIRECT),
            (MapType::Devmap, 1 << 32 | 1, 0, XDP_REDIRECT),
            (MapType::Devmap, 2, 0, 0),
            (MapType::Devmap, 2, 2, 2),
            (MapType::Devmap, 2, BROADCAST, XDP_REDIRECT),
            (MapType::Devmap, 1, 4, XDP_ABORTED),
            (MapType::Xskmap, 2, 3, 3),
            (MapType::Xskmap, 1, BROADCAST, XDP_ABORTED),
        ] {
            let mut bench = Bench::new();
            let map = only_one(&mut bench, map_type);
            let returned = bench.ok(id::redirect_map, [map, key, flags]);
            assert_eq!(returned, want, "{map_type:?} {key} {flags}");
        }
        let mut bench = Bench::new();
        let map = only_one(&mut bench, MapType::Array);
        assert!(bench.call(id::redirect_map, [map, 1, 0]).is_err());
    }

    #[test]
    fn what_is_no_map_is_said() {
        let problem = Bench::new().call(id::redirect_map, [0, 0, 0]).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "argument 1 is a null pointer, a map wanted"
        );
    }
}
