//! Dispatch queues: tasks go into them, wait, and go to a CPU's local queue.

use super::super::iterator::{end, next_object};
use super::super::kernel::{field, object};
use super::super::kernel_iterator::over;
use super::super::task::task;
use super::{Result, dispatch_task, fail, may_run_on, named, scheduler};
use crate::spec::call::IteratorKind;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::world::{Insert, Phase, QueueId};

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
    let phase = scheduler(call)?.phase;
    if slice != 0 || field(call, task, "scx.slice") == 0 {
        set(call, task, "scx.slice", slice.max(1))?;
    }
    if let Some(vtime) = vtime {
        set(call, task, "scx.dsq_vtime", vtime)?;
    }
    let insert = Insert::new(flags, vtime);
    match phase {
        Phase::Enqueue(direct) if direct != task => {
            let (direct, task) = (named(call.machine, direct), named(call.machine, task));
            let why = format!("scheduling for {direct} but trying to direct-dispatch {task}");
            fail(call, why)
        }
        Phase::Enqueue(_) => {
            let state = scheduler(call)?.tasks.entry(task).or_default();
            if state.direct.is_some() {
                let why = format!("{} already direct-dispatched", named(call.machine, task));
                return fail(call, why);
            }
            state.direct = Some((number, insert));
            Ok(0)
        }
        Phase::Dispatch => {
            let scheduler = scheduler(call)?;
            if scheduler.slots == 0 {
                return fail(call, "dispatch buffer overflow".to_owned());
            }
            scheduler.slots -= 1;
            // The task may have gone since: the kernel ignores it (`finish_dispatch`).
            if !scheduler.tasks.get(&task).is_some_and(|task| task.owned) {
                return Ok(0);
            }
            let id = queue(call, number);
            dispatch_task(call.machine, task, id, insert);
            Ok(0)
        }
        Phase::Other => {
            let why = "a task is dispatched from select_cpu, enqueue or dispatch".to_owned();
            fail(call, why)
        }
    }
}

/// `scx_bpf_dsq_move_to_local(number)`: the first task that may run here.
pub(in crate::vm::calls::kfuncs) fn dsq_move_to_local(call: &mut Call<'_>) -> Result {
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
    Ok(1)
}

/// `scx_bpf_dispatch_nr_slots()`.
pub(in crate::vm::calls::kfuncs) fn dispatch_nr_slots(call: &mut Call<'_>) -> Result {
    Ok(scheduler(call)?.slots.into())
}

/// `scx_bpf_dsq_nr_queued(number)`.
pub(in crate::vm::calls::kfuncs) fn dsq_nr_queued(call: &mut Call<'_>) -> Result {
    let id = queue(call, call.arg(1));
    let queue = scheduler(call)?.queue(id);
    Ok(queue.map_or(Errno::ENOENT.to_ret(), |queue| queue.tasks().count() as u64))
}

/// `bpf_iter_scx_dsq_new(iterator, number, flags)`.
pub(in crate::vm::calls::kfuncs) fn dsq_new(call: &mut Call<'_>) -> Result {
    let (id, flags) = (QueueId(call.arg(2)), call.arg(3));
    let queue = scheduler(call)?.queue(id);
    let objects = match queue {
        _ if id.is_builtin() || flags & !REVERSED != 0 => Err(Errno::EINVAL),
        None => Err(Errno::ENOENT),
        Some(queue) => {
            let mut tasks: Vec<_> = queue.tasks().collect();
            if flags & REVERSED != 0 {
                tasks.reverse();
            }
            Ok(tasks)
        }
    };
    over(call, IteratorKind::ScxDsq, ITERATOR_SIZE, objects)
}

pub(in crate::vm::calls::kfuncs) fn dsq_next(call: &mut Call<'_>) -> Result {
    next_object(call, IteratorKind::ScxDsq)
}

pub(in crate::vm::calls::kfuncs) fn dsq_destroy(call: &mut Call<'_>) -> Result {
    end(call, IteratorKind::ScxDsq)
}

/// `scx_bpf_dsq_move(iterator, task, number, flags)`: to another queue, unless the task has left
/// its queue.
pub(in crate::vm::calls::kfuncs) fn dsq_move(call: &mut Call<'_>) -> Result {
    move_task(call, None)
}

/// `scx_bpf_dsq_move_vtime(iterator, task, number, flags)`: by the task's virtual time.
pub(in crate::vm::calls::kfuncs) fn dsq_move_vtime(call: &mut Call<'_>) -> Result {
    let task = task(call, 2)?;
    let vtime = field(call, task, "scx.dsq_vtime");
    move_task(call, Some(vtime))
}

fn move_task(call: &mut Call<'_>, vtime: Option<u64>) -> Result {
    let (task, number, flags) = (task(call, 2)?, call.arg(3), call.arg(4));
    let state = scheduler(call)?.tasks.get(&task).copied();
    let from = state.and_then(|state| state.queue);
    if from.is_none_or(QueueId::is_builtin) {
        return Ok(0);
    }
    let id = queue(call, number);
    dispatch_task(call.machine, task, id, Insert::new(flags, vtime));
    Ok(1)
}
