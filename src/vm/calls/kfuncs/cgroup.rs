//! Cgroups (`kernel/bpf/helpers.c`): the `struct cgroup`s in kernel memory, and the cgroups
//! of the current task.

use super::kernel::{acquire, all, argument, field};
use super::task;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::world::kernel::KernelObject;

type Result = std::result::Result<u64, HelperProblem>;

const CGROUP: &str = "a struct cgroup";
/// An upper bound for the nesting of cgroups.
const MAX_DEPTH: usize = 256;

fn cgroup(call: &Call<'_>, arg: usize) -> Result {
    argument(call, arg, "cgroup", CGROUP)
}

/// A cgroup and its ancestors, the root last. `struct cgroup` starts with its `self`.
pub(super) fn ancestors(call: &Call<'_>, cgroup: u64) -> Vec<u64> {
    let above = |at: &u64| Some(field(call, *at, "self.parent")).filter(|parent| *parent != 0);
    std::iter::successors(Some(cgroup), above)
        .take(MAX_DEPTH)
        .collect()
}

/// The cgroup with this ID: one that a test created, or one of the current task, which is created on
/// demand.
fn of_id(call: &Call<'_>, id: u64) -> u64 {
    let there = all(call, "cgroup");
    let found = there.iter().find(|cgroup| cgroup.get("kn.id") == Ok(id));
    let found = found.map(KernelObject::address);
    found
        .or_else(|| Some(call.machine.world.find_cgroup(id)?.address()))
        .unwrap_or(0)
}

pub(super) fn acquire_cgroup(call: &mut Call<'_>) -> Result {
    let at = cgroup(call, 1)?;
    acquire(call, at)
}

pub(super) fn from_id(call: &mut Call<'_>) -> Result {
    let at = of_id(call, call.arg(1));
    acquire(call, at)
}

/// `bpf_cgroup_ancestor(cgroup, level)`: the ancestor at a level (the root has level 0), or
/// null.
pub(super) fn ancestor(call: &mut Call<'_>) -> Result {
    let (at, level) = (cgroup(call, 1)?, call.arg_i32(2));
    let above = ancestors(call, at);
    // A test may set the level without creating the ancestors.
    let own = field(call, at, "level").max(above.len() as u64 - 1);
    let up = u64::try_from(level)
        .ok()
        .and_then(|level| own.checked_sub(level));
    let up = up.and_then(|up| usize::try_from(up).ok());
    let found = up.and_then(|up| above.get(up)).copied();
    acquire(call, found.unwrap_or(0))
}

/// The cgroup of a task in the default hierarchy.
pub(super) fn of_task(call: &Call<'_>, of: u64) -> Result {
    let set = field(call, of, "cgroups.dfl_cgrp");
    if set == 0 && of == task::current(call)? {
        return Ok(of_id(call, call.machine.world.task_now().cgroup_id()));
    }
    Ok(set)
}

/// `bpf_task_under_cgroup(task, ancestor)`: whether the task's cgroup is this one or a
/// descendant.
pub(super) fn task_under(call: &mut Call<'_>) -> Result {
    let (task, above) = (task::task(call, 1)?, cgroup(call, 2)?);
    let own = of_task(call, task)?;
    Ok(ancestors(call, own).contains(&above).into())
}
