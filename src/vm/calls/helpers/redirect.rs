//! Helpers that redirect a packet (`net/core/filter.c`, `include/linux/filter.h`). Nothing is
//! sent: the helper returns the action for the program, and the target is in the outcome.

use super::packet;
use crate::spec::{MapType, ProgType, RedirectFlags};
use crate::vm::machine::{Call, Output, Redirect, RedirectTarget, Returned};
use crate::vm::maps::{Kind, Map, RedirectValue};

/// `XDP_ABORTED`.
const XDP_ABORTED: u64 = 0;
/// `XDP_REDIRECT`.
const XDP_REDIRECT: u64 = 4;
/// `TC_ACT_SHOT`.
const TC_ACT_SHOT: u64 = 2;
/// `TC_ACT_REDIRECT`, also `BPF_REDIRECT`.
const TC_ACT_REDIRECT: u64 = 7;
/// Flags of `bpf_redirect_map` with the action on a miss: `XDP_ABORTED` to `XDP_TX`.
const ACTIONS: u64 = 3;
const BROADCAST: u64 = RedirectFlags::BROADCAST.bits();
const EXCLUDE_INGRESS: u64 = RedirectFlags::EXCLUDE_INGRESS.bits();
const INGRESS: u64 = RedirectFlags::INGRESS.bits();

/// Records the redirect in the outputs.
pub(super) fn record(call: &mut Call<'_>, map: Option<&str>, target: RedirectTarget, flags: u64) {
    call.machine.output(Output::Redirect(Redirect {
        map: map.map(str::to_owned),
        target,
        flags,
    }));
}

/// `bpf_redirect`, `bpf_xdp_redirect(interface, flags)`: returns the redirect action.
pub(super) fn redirect(call: &mut Call<'_>) -> Returned {
    let (index, flags) = (call.arg_u32(1), call.arg(2));
    let (known, refused, done) = match packet::prog_type(call) {
        Some(ProgType::Xdp) => (0, XDP_ABORTED, XDP_REDIRECT),
        _ => (INGRESS, TC_ACT_SHOT, TC_ACT_REDIRECT),
    };
    if flags & !known != 0 {
        return Ok(refused);
    }
    let program = None;
    record(call, None, RedirectTarget::Device { index, program }, flags);
    Ok(done)
}

/// `bpf_redirect_peer(interface, flags)`: no flags are defined.
pub(super) fn redirect_peer(call: &mut Call<'_>) -> Returned {
    if call.arg(2) != 0 {
        return Ok(TC_ACT_SHOT);
    }
    let target = RedirectTarget::Peer(call.arg_u32(1));
    record(call, None, target, 0);
    Ok(TC_ACT_REDIRECT)
}

/// `bpf_redirect_neigh(interface, parameters, their size, flags)`: no flags are defined; the
/// parameters have full size or size 0.
pub(super) fn redirect_neigh(call: &mut Call<'_>) -> Returned {
    /// `sizeof(struct bpf_redir_neigh)`.
    const PARAMETERS: u32 = 20;
    let size = call.arg_u32(3);
    if call.arg(4) != 0 || size != 0 && size < PARAMETERS {
        return Ok(TC_ACT_SHOT);
    }
    let target = RedirectTarget::Neighbour(call.arg_u32(1));
    record(call, None, target, 0);
    Ok(TC_ACT_REDIRECT)
}

/// `bpf_redirect_map(map, key, flags)`: on a miss returns the action in the flags.
pub(super) fn redirect_map(call: &mut Call<'_>) -> Returned {
    let (key, flags) = (call.arg_u32(2), call.arg(3));
    let (_, map) = call.map(1)?;
    let known = match map.def().map_type {
        MapType::Devmap | MapType::DevmapHash => ACTIONS | BROADCAST | EXCLUDE_INGRESS,
        MapType::Cpumap | MapType::Xskmap => ACTIONS,
        _ => return Err(call.wrong(1, "a map to redirect to")),
    };
    if flags & !known != 0 {
        return Ok(XDP_ABORTED);
    }
    let Some(target) = target(&*map, key, flags) else {
        return Ok(flags & ACTIONS);
    };
    record(call, Some(&map.def().name), target, flags);
    Ok(XDP_REDIRECT)
}

/// The target of a key; `None` on a miss.
fn target(map: &dyn Map, key: u32, flags: u64) -> Option<RedirectTarget> {
    let bytes = key.to_le_bytes();
    match map.kind() {
        Kind::Devices(devices) if flags & BROADCAST != 0 => Some(RedirectTarget::Devices {
            indices: devices.all().iter().map(|value| value.target).collect(),
            exclude_ingress: flags & EXCLUDE_INGRESS != 0,
        }),
        Kind::Devices(devices) => {
            let RedirectValue { target, program } = devices.get(&bytes)?;
            Some(RedirectTarget::Device {
                index: target,
                program,
            })
        }
        Kind::Cpus(cpus) => {
            let program = cpus.get(key)?.program;
            Some(RedirectTarget::Cpu { cpu: key, program })
        }
        Kind::Sockets(sockets) => sockets.get(&bytes).map(RedirectTarget::Socket),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::UpdateFlags;
    use crate::spec::helpers::id;
    use crate::vm::ProgramHandle;
    use crate::vm::events::Event;

    /// The recorded redirect targets.
    fn taken(bench: &mut Bench) -> Vec<RedirectTarget> {
        let outputs = bench.machine.take_outputs().into_iter();
        let targets = outputs.map(|output| match output {
            Output::Redirect(redirect) => redirect.target,
            other => panic!("{other:?}"),
        });
        targets.collect()
    }

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
            let action = bench.ok(id::redirect, [7, flags]);
            assert_eq!(action, want, "{prog_type:?} {flags}");
            let index = 7;
            let program = None;
            let sent = vec![RedirectTarget::Device { index, program }];
            let refused = [XDP_ABORTED, TC_ACT_SHOT].contains(&want);
            assert_eq!(taken(&mut bench), if refused { vec![] } else { sent });
        }
    }

    #[test]
    fn peers_and_neighbours_know_no_flags() {
        let mut bench = Bench::new();
        assert_eq!(bench.ok(id::redirect_peer, [1, 0]), TC_ACT_REDIRECT);
        assert_eq!(bench.ok(id::redirect_peer, [1, 1]), TC_ACT_SHOT);
        assert_eq!(taken(&mut bench), [RedirectTarget::Peer(1)]);
        for (size, flags, want) in [
            (0, 0, TC_ACT_REDIRECT),
            (20, 0, TC_ACT_REDIRECT),
            (24, 0, TC_ACT_REDIRECT),
            (8, 0, TC_ACT_SHOT),
            (0, 1, TC_ACT_SHOT),
        ] {
            assert_eq!(bench.ok(id::redirect_neigh, [1, 0, size, flags]), want);
        }
        assert_eq!(taken(&mut bench).len(), 3);
    }

    /// A map with one entry: device 5 with a program, CPU 1, or a socket.
    fn only_one(bench: &mut Bench, map_type: MapType) -> u64 {
        let size = if map_type == MapType::Xskmap { 4 } else { 8 };
        let (address, _, map) = bench.map(map_type, 4, size, 4);
        let (any, program) = (UpdateFlags::empty(), Some(ProgramHandle(3)));
        let one = 1u32.to_le_bytes();
        match map.kind() {
            Kind::Devices(devices) => devices.set(&one, 5, program, any).unwrap(),
            Kind::Cpus(cpus) => cpus.set(1, 192, program, any).unwrap(),
            Kind::Sockets(sockets) => sockets.set(&one, 0xffff_8881_0000_0040, any).unwrap(),
            _ => {}
        }
        address
    }

    #[test]
    fn a_miss_is_the_action_in_the_flags() {
        for (map_type, key, flags, want) in [
            (MapType::Devmap, 1, 0, XDP_REDIRECT),
            (MapType::Devmap, 1 << 32 | 1, 0, XDP_REDIRECT),
            (MapType::DevmapHash, 1, 0, XDP_REDIRECT),
            (MapType::Devmap, 2, 0, 0),
            (MapType::Devmap, 2, 2, 2),
            (MapType::Devmap, 99, 2, 2),
            (MapType::Devmap, 2, BROADCAST, XDP_REDIRECT),
            (MapType::Devmap, 1, 4, XDP_ABORTED),
            (MapType::Cpumap, 1, 0, XDP_REDIRECT),
            (MapType::Cpumap, 2, 1, 1),
            (MapType::Cpumap, 1, BROADCAST, XDP_ABORTED),
            (MapType::Xskmap, 1, 0, XDP_REDIRECT),
            (MapType::Xskmap, 2, 3, 3),
            (MapType::Xskmap, 1, BROADCAST, XDP_ABORTED),
        ] {
            let mut bench = Bench::new();
            let map = only_one(&mut bench, map_type);
            let returned = bench.ok(id::redirect_map, [map, key, flags]);
            assert_eq!(returned, want, "{map_type:?} {key} {flags}");
            let redirects = taken(&mut bench).len();
            assert_eq!(redirects, usize::from(want == XDP_REDIRECT));
        }
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::Array, 4, 4, 4);
        assert!(bench.call(id::redirect_map, [map, 1, 0]).is_err());
    }

    #[test]
    fn the_outcome_says_where_a_packet_goes() {
        let program = Some(ProgramHandle(3));
        let cases = [
            (
                MapType::Devmap,
                0,
                RedirectTarget::Device { index: 5, program },
            ),
            (
                MapType::DevmapHash,
                BROADCAST | EXCLUDE_INGRESS,
                RedirectTarget::Devices {
                    indices: vec![5],
                    exclude_ingress: true,
                },
            ),
            (MapType::Cpumap, 0, RedirectTarget::Cpu { cpu: 1, program }),
            (
                MapType::Xskmap,
                0,
                RedirectTarget::Socket(0xffff_8881_0000_0040),
            ),
        ];
        for (map_type, flags, target) in cases {
            let mut bench = Bench::new();
            let map = only_one(&mut bench, map_type);
            bench.ok(id::redirect_map, [map, 1, flags]);
            let redirect = Redirect {
                map: Some("m".into()),
                target,
                flags,
            };
            assert_eq!(bench.machine.take_outputs(), [Output::Redirect(redirect)]);
        }
    }

    #[test]
    fn what_is_no_map_is_said() {
        let problem = Bench::new().call(id::redirect_map, [0, 0, 0]).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "argument 1 is a null pointer, expected a map"
        );
    }
}
