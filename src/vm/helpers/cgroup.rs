//! Helpers that ask which cgroup something is in (`kernel/bpf/cgroup.c`,
//! `net/core/filter.c`).

use super::super::maps::{CgroupArray, Kind};
use super::call::{Call, Returned, unfit};
use crate::util::Errno;

/// The most cgroups between one and the root: more are a circle.
const MAX_DEPTH: usize = 4096;

/// A cgroup of an array, by the address of its `struct cgroup` or by its id.
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

/// Whether the current task is in a cgroup or below it: by the id that the world gives
/// the task's cgroup, or, where the task's object leads to a `struct cgroup`, by that and
/// those above it. All tasks are below the root, whose id is 1.
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
        // A cgroup begins with its own state, which knows the parent's.
        let object = world.kernel_memory().object_at(at);
        let parent = object.and_then(|cgroup| cgroup.get("self.parent").ok());
        at = parent.unwrap_or_default();
    }
    false
}

/// `(map, index)`.
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
