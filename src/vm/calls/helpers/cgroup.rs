//! Helpers that test cgroup membership (`kernel/bpf/cgroup.c`, `net/core/filter.c`).

use super::net::socket::of_event;
use crate::util::Errno;
use crate::vm::machine::{Call, Returned, unfit};
use crate::vm::maps::{CgroupArray, Kind};

/// The most cgroups between one and the root: more are a cycle.
const MAX_DEPTH: usize = 4096;

/// A cgroup of an array, by the address of its `struct cgroup` and by its id.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    address: u64,
    id: Option<u64>,
}

impl Wanted {
    fn of(call: &Call<'_>, cgroups: &CgroupArray, index: u32) -> Result<Self, Errno> {
        let address = cgroups.cgroup(index)?;
        let object = call.machine.world.kernel_memory().object_at(address);
        let id = match object {
            Some(object) => object.get("kn.id").ok().filter(|id| *id != 0),
            None => Some(address),
        };
        Ok(Self { address, id })
    }
}

/// Whether the current task is in a cgroup or its descendants: by the id of the task's cgroup
/// in the mocked world, or, if the task's object has a `struct cgroup`, by that and its
/// ancestors. All tasks are below the root, whose id is 1.
fn task_is_under(call: &mut Call<'_>, wanted: Wanted) -> bool {
    const ROOT: u64 = 1;
    if wanted.id == Some(ROOT) || wanted.id == Some(call.machine.world.task().cgroup_id()) {
        return true;
    }
    let world = &call.machine.world;
    let start = world
        .current_task()
        .and_then(|task| task.get("cgroups.dfl_cgrp"));
    let mut at = start.unwrap_or_default();
    for _ in 0..MAX_DEPTH {
        if at == 0 {
            return false;
        }
        if at == wanted.address {
            return true;
        }
        // `struct cgroup` starts with `self`, which has the parent's address.
        let object = world.kernel_memory().object_at(at);
        let parent = object.and_then(|cgroup| cgroup.get("self.parent").ok());
        at = parent.unwrap_or_default();
    }
    false
}

/// `bpf_skb_under_cgroup(context, map, index)`: whether the packet's socket is in the cgroup
/// in this slot, or in a descendant.
pub(super) fn skb_under_cgroup(call: &mut Call<'_>) -> Returned {
    let (_, map) = call.map(2)?;
    let Kind::Cgroups(cgroups) = map.kind() else {
        return Err(unfit(2, &*map));
    };
    let ancestry = of_event(call, |socket| {
        socket.is_full().then(|| socket.cgroup.clone())
    });
    let Some(ancestry) = ancestry.flatten() else {
        return Ok(Errno::ENOENT.to_ret());
    };
    Ok(match Wanted::of(call, cgroups, call.arg_u32(3)) {
        Ok(wanted) => wanted.id.is_some_and(|id| ancestry.has(id)).into(),
        Err(errno) => errno.to_ret(),
    })
}

/// `bpf_current_task_under_cgroup(map, index)`: the same for the current task.
pub(super) fn current_task_under_cgroup(call: &mut Call<'_>) -> Returned {
    let (_, map) = call.map(1)?;
    let Kind::Cgroups(cgroups) = map.kind() else {
        return Err(unfit(1, &*map));
    };
    Ok(match Wanted::of(call, cgroups, call.arg_u32(2)) {
        Ok(wanted) => task_is_under(call, wanted).into(),
        Err(errno) => errno.to_ret(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;
    use crate::spec::{MapType, ProgType, UpdateFlags};
    use crate::vm::events::Event;

    /// An array of the cgroups 1, 7 and 8, and an empty slot.
    fn array(bench: &mut Bench) -> u64 {
        let (map, _, array) = bench.map(MapType::CgroupArray, 4, 4, 4);
        let Kind::Cgroups(cgroups) = array.kind() else {
            panic!("no cgroup array");
        };
        for (index, id) in [(0u32, 1), (1, 7), (2, 8)] {
            let set = cgroups.set(&index.to_le_bytes(), id, UpdateFlags::empty());
            set.unwrap();
        }
        map
    }

    #[test]
    fn a_task_is_in_its_cgroup_and_below_the_root() {
        let mut bench = Bench::new();
        let map = array(&mut bench);
        bench.machine.world.task().set_cgroup_id(7);
        for (index, under) in [(0, 1), (1, 1), (2, 0)] {
            assert_eq!(bench.ok(id::current_task_under_cgroup, [map, index]), under);
        }
        let past = [map, 4];
        assert_eq!(
            bench.errno(id::current_task_under_cgroup, past),
            Errno::E2BIG
        );
        let empty = [map, 3];
        assert_eq!(
            bench.errno(id::current_task_under_cgroup, empty),
            Errno::EAGAIN
        );
        let (other, ..) = bench.map(MapType::Array, 4, 4, 4);
        assert!(
            bench
                .call(id::current_task_under_cgroup, [other, 0])
                .is_err()
        );
    }

    #[test]
    fn a_packet_is_where_its_socket_is() {
        let mut bench = Bench::new();
        let socket = bench.machine.world.net().tcp().cgroup([1, 7, 9]).id();
        let event = Event::packet([0; 64]).with(|kern| kern.socket = Some(socket));
        let mut bench_on = |event: &Event| {
            let placed = event.place(ProgType::SchedCls, &mut bench.machine.space);
            bench
                .machine
                .enter(ProgType::SchedCls, placed.unwrap())
                .unwrap();
            let map = array(&mut bench);
            let context = bench.context();
            [0, 1, 2].map(|index| bench.ok(id::skb_under_cgroup, [context, map, index]))
        };
        assert_eq!(bench_on(&event), [1, 1, 0]);
    }
}
