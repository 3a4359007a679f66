//! Dispatch queues: tasks go into them, wait, and go to a CPU's local queue.

use super::super::iterator::{begin, end, next_object, under_way};
use super::super::kernel::{field, object};
use super::super::task::task;
use super::{
    Result, dispatch_task, fail, flush_dispatches, is_allowed, may_run_on, named, scheduler,
};
use crate::spec::call::IteratorKind;
use crate::util::Errno;
use crate::vm::machine::objects::Iterator;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::world::{Insert, Pending, Phase, QueueId};

/// `SCX_DSQ_ITER_REV`.
const REVERSED: u64 = 1 << 16;
/// Size of `struct bpf_iter_scx_dsq`.
const ITERATOR_SIZE: usize = 48;

/// The queue of a number; `SCX_DSQ_LOCAL` is that of the current CPU.
fn queue(call: &Call<'_>, number: u64) -> QueueId {
    QueueId::on(number, call.machine.world.cpu())
}

fn set(call: &Call<'_>, task: u64, path: &str, value: u64) -> Result<()> {
    let Some(task) = object(call, task) else {
        return Ok(());
    };
    let set = task.set_if_there(path, value);
    set.map_err(|why| HelperProblem::Other(why.to_string()))
}

/// `scx_bpf_create_dsq(number, node)`.
pub(in crate::vm::calls::kfuncs) fn create_dsq(call: &mut Call<'_>) -> Result {
    let id = QueueId(call.arg(1));
    Ok(if id.is_builtin() {
        Errno::EINVAL.to_ret()
    } else if scheduler(call)?.create(id) {
        0
    } else {
        Errno::EEXIST.to_ret()
    })
}

/// `scx_bpf_destroy_dsq(number)`.
pub(in crate::vm::calls::kfuncs) fn destroy_dsq(call: &mut Call<'_>) -> Result {
    let id = QueueId(call.arg(1));
    let scheduler = scheduler(call)?;
    let Some(queue) = scheduler.queue(id) else {
        return Ok(0);
    };
    let waiting = queue.tasks().count();
    if id.is_builtin() || scheduler.destroy(id).is_none() {
        let why = format!(
            "attempting to destroy in-use dsq {:#018x} (nr={waiting})",
            id.0
        );
        return fail(call, why);
    }
    Ok(0)
}

/// `scx_bpf_dsq_insert(task, number, slice, flags)`.
pub(in crate::vm::calls::kfuncs) fn dsq_insert(call: &mut Call<'_>) -> Result {
    let flags = call.arg(4);
    insert(call, flags, None)
}

/// `scx_bpf_dsq_insert_vtime(task, number, slice, vtime, flags)`.
pub(in crate::vm::calls::kfuncs) fn dsq_insert_vtime(call: &mut Call<'_>) -> Result {
    let (vtime, flags) = (call.arg(4), call.arg(5));
    insert(call, flags, Some(vtime))
}

fn insert(call: &mut Call<'_>, flags: u64, vtime: Option<u64>) -> Result {
    let (task, number, slice) = (task(call, 1)?, call.arg(2), call.arg(3));
    if !is_allowed(call, Phase::ENQUEUE | Phase::DISPATCH)? {
        return Ok(0);
    }
    if slice != 0 || field(call, task, "scx.slice") == 0 {
        set(call, task, "scx.slice", slice.max(1))?;
    }
    if let Some(vtime) = vtime {
        set(call, task, "scx.dsq_vtime", vtime)?;
    }
    let insert = Insert::new(flags, vtime);
    match scheduler(call)?.phase.direct() {
        Some(direct) if direct != task => {
            let (direct, task) = (named(call.machine, direct), named(call.machine, task));
            let why = format!("scheduling for {direct} but trying to direct-dispatch {task}");
            fail(call, why)
        }
        Some(_) => {
            let state = scheduler(call)?.tasks.entry(task).or_default();
            if state.direct.is_some() {
                let why = format!("{} already direct-dispatched", named(call.machine, task));
                return fail(call, why);
            }
            state.direct = Some((number, insert));
            Ok(0)
        }
        None => {
            let scheduler = scheduler(call)?;
            if scheduler.slots() == 0 {
                return fail(call, "dispatch buffer overflow".to_owned());
            }
            let pending = Pending {
                task,
                number,
                insert,
            };
            scheduler.pending.push(pending);
            Ok(0)
        }
    }
}

/// `scx_bpf_dispatch_cancel()`: takes back the last of the pending tasks, and its slot.
pub(in crate::vm::calls::kfuncs) fn dispatch_cancel(call: &mut Call<'_>) -> Result {
    if is_allowed(call, Phase::DISPATCH)? && scheduler(call)?.pending.pop().is_none() {
        return fail(call, "dispatch buffer underflow".to_owned());
    }
    Ok(0)
}

/// `scx_bpf_reenqueue_local()`: the number of tasks in the local queue of this CPU, which go back
/// to `enqueue`. It is called for them after `cpu_release`; the kernel calls it before this kfunc
/// returns.
pub(in crate::vm::calls::kfuncs) fn reenqueue_local(call: &mut Call<'_>) -> Result {
    if !is_allowed(call, Phase::CPU_RELEASE)? {
        return Ok(0);
    }
    let cpu = call.machine.world.cpu();
    Ok(scheduler(call)?.reenqueue(cpu).into())
}

/// `scx_bpf_dsq_move_to_local(number)`: the first task that may run here. Pending tasks go to their
/// queues first.
pub(in crate::vm::calls::kfuncs) fn dsq_move_to_local(call: &mut Call<'_>) -> Result {
    if !is_allowed(call, Phase::DISPATCH)? {
        return Ok(0);
    }
    flush_dispatches(call.machine);
    let (id, cpu) = (QueueId(call.arg(1)), call.machine.world.cpu());
    let Some(queue) = scheduler(call)?.queue(id).filter(|_| !id.is_builtin()) else {
        return fail(call, format!("invalid DSQ ID {:#018x}", id.0));
    };
    let tasks: Vec<_> = queue.tasks().collect();
    let found = tasks
        .into_iter()
        .find(|task| may_run_on(call.machine, *task, cpu));
    let Some(task) = found else {
        return Ok(0);
    };
    dispatch_task(call.machine, task, QueueId::local(cpu), Insert::default());
    scheduler(call)?.dispatched += 1;
    Ok(1)
}

/// `scx_bpf_dispatch_nr_slots()`.
pub(in crate::vm::calls::kfuncs) fn dispatch_nr_slots(call: &mut Call<'_>) -> Result {
    match is_allowed(call, Phase::DISPATCH)? {
        true => Ok(scheduler(call)?.slots().into()),
        false => Ok(0),
    }
}

/// `scx_bpf_dsq_nr_queued(number)`.
pub(in crate::vm::calls::kfuncs) fn dsq_nr_queued(call: &mut Call<'_>) -> Result {
    let id = queue(call, call.arg(1));
    let queue = scheduler(call)?.queue(id);
    Ok(queue.map_or(Errno::ENOENT.to_ret(), |queue| queue.tasks().count() as u64))
}

/// `bpf_iter_scx_dsq_new(iterator, number, flags)`. Built-in queues have no iterator.
pub(in crate::vm::calls::kfuncs) fn dsq_new(call: &mut Call<'_>) -> Result {
    let (id, flags) = (QueueId(call.arg(2)), call.arg(3));
    let queue = scheduler(call)?.queue(id).filter(|_| !id.is_builtin());
    let tasks = match queue {
        _ if flags & !REVERSED != 0 => Err(Errno::EINVAL),
        None => Err(Errno::ENOENT),
        Some(queue) => {
            let mut tasks: Vec<_> = queue.tasks().collect();
            if flags & REVERSED != 0 {
                tasks.reverse();
            }
            Ok(tasks)
        }
    };
    let result = tasks.as_ref().err().map_or(0, |errno| errno.to_ret());
    let iterator = Iterator::ScxDsq {
        queue: tasks.is_ok().then_some(id.0),
        left: tasks.unwrap_or_default().into_iter(),
        slice: None,
        vtime: None,
    };
    begin(call, ITERATOR_SIZE, iterator)?;
    Ok(result)
}

pub(in crate::vm::calls::kfuncs) fn dsq_next(call: &mut Call<'_>) -> Result {
    next_object(call, IteratorKind::ScxDsq)
}

pub(in crate::vm::calls::kfuncs) fn dsq_destroy(call: &mut Call<'_>) -> Result {
    end(call, IteratorKind::ScxDsq)
}

/// `scx_bpf_dsq_move_set_slice(iterator, slice)`: the slice of the next task that is moved.
pub(in crate::vm::calls::kfuncs) fn dsq_move_set_slice(call: &mut Call<'_>) -> Result {
    let to = call.arg(2);
    if let Iterator::ScxDsq { slice, .. } = under_way(call, IteratorKind::ScxDsq)? {
        *slice = Some(to);
    }
    Ok(0)
}

/// `scx_bpf_dsq_move_set_vtime(iterator, vtime)`: the virtual time of the next task that is moved.
pub(in crate::vm::calls::kfuncs) fn dsq_move_set_vtime(call: &mut Call<'_>) -> Result {
    let to = call.arg(2);
    if let Iterator::ScxDsq { vtime, .. } = under_way(call, IteratorKind::ScxDsq)? {
        *vtime = Some(to);
    }
    Ok(0)
}

/// `scx_bpf_dsq_move(iterator, task, number, flags)`: to another queue, unless the task has left
/// the iterator's.
pub(in crate::vm::calls::kfuncs) fn dsq_move(call: &mut Call<'_>) -> Result {
    move_task(call, false)
}

/// `scx_bpf_dsq_move_vtime(iterator, task, number, flags)`: by the task's virtual time.
pub(in crate::vm::calls::kfuncs) fn dsq_move_vtime(call: &mut Call<'_>) -> Result {
    move_task(call, true)
}

fn move_task(call: &mut Call<'_>, by_vtime: bool) -> Result {
    let (task, number, flags) = (task(call, 2)?, call.arg(3), call.arg(4));
    // Also from no member at all: from a timer, or a syscall program.
    if scheduler(call)?.phase.mask() != 0 && !is_allowed(call, Phase::DISPATCH)? {
        return Ok(0);
    }
    let (from, slice, vtime) = match under_way(call, IteratorKind::ScxDsq)? {
        Iterator::ScxDsq {
            queue,
            slice,
            vtime,
            ..
        } => (*queue, slice.take(), vtime.take()),
        _ => (None, None, None),
    };
    let state = scheduler(call)?.tasks.get(&task).copied();
    let is_there = state.is_some_and(|state| state.queue == from.map(QueueId));
    if from.is_none() || !is_there {
        return Ok(0);
    }
    for (path, value) in [("scx.slice", slice), ("scx.dsq_vtime", vtime)] {
        if let Some(value) = value {
            set(call, task, path, value)?;
        }
    }
    let vtime = by_vtime.then(|| field(call, task, "scx.dsq_vtime"));
    let id = queue(call, number);
    dispatch_task(call.machine, task, id, Insert::new(flags, vtime));
    Ok(1)
}
