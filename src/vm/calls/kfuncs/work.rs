//! Work queues and task work (`kernel/bpf/helpers.c`). Queued work runs at the next
//! [`Vm::advance`](crate::Vm::advance), by any time.

use super::super::helpers::timer::{Told, init, key, set, slot};
use crate::btf::FieldKind;
use crate::util::Errno;
use crate::vm::machine::deferred::{DeferredKind, When};
use crate::vm::machine::{Call, HelperProblem, Returned};

fn returned(told: Told) -> u64 {
    told.err().map_or(0, Errno::to_ret)
}

/// `bpf_wq_init(work, map, flags)`.
pub(super) fn wq_init(call: &mut Call<'_>) -> Returned {
    if call.arg_u32(3) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let slot = slot(call, 1, 2, FieldKind::Workqueue)?;
    Ok(returned(init(call, DeferredKind::Work, slot)?))
}

/// `bpf_wq_set_callback(work, callback, flags)`.
pub(super) fn wq_set_callback(call: &mut Call<'_>) -> Returned {
    if call.arg_u32(3) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    Ok(returned(set(call, call.arg(2))?))
}

/// `bpf_wq_start(work, flags)`. Work that is queued already is not queued again.
pub(super) fn wq_start(call: &mut Call<'_>) -> Returned {
    if call.arg_u32(2) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (key, cpu) = (key(call, 1)?, call.machine.world.cpu());
    let mut table = call.machine.shared.deferred.lock();
    let entry = table.find(key, call.arg(1));
    let Some((Some(_), waits)) = entry.map(|entry| (entry.callback, entry.armed.is_some())) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    if !waits {
        table.arm(key, When::Soon, cpu);
    }
    Ok(0)
}

/// `bpf_task_work_schedule_signal_impl`, `bpf_task_work_schedule_resume_impl(task, work, map,
/// callback)`: both behave the same here. `EBUSY` while the work is queued or runs, and if
/// user space has no descriptor of the map.
pub(super) fn task_work_schedule(call: &mut Call<'_>) -> Returned {
    let (callback, cpu) = (call.arg(4), call.machine.world.cpu());
    let slot = slot(call, 2, 3, FieldKind::TaskWork)?;
    let held = key(call, 2)?;
    let running = call.machine.cpu.running == Some(held) && held != 0;
    let mut table = call.machine.shared.deferred.lock();
    let waits = table
        .find(held, slot.address)
        .is_some_and(|entry| entry.armed.is_some());
    if waits || running || !table.is_held(slot.map) {
        return Ok(Errno::EBUSY.to_ret());
    }
    let key = match table.find(held, slot.address) {
        Some(_) => held,
        None => table.insert(DeferredKind::TaskWork, slot),
    };
    if let Some(entry) = table.get_mut(key) {
        entry.callback = Some(callback);
    }
    table.arm(key, When::Soon, cpu);
    let stored = call.machine.space.store(slot.address, 8, key);
    stored
        .map(|()| 0)
        .map_err(|fault| HelperProblem::Access { arg: 2, fault })
}
