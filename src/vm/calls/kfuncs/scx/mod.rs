//! sched_ext (`kernel/sched/ext.c`, `kernel/sched/ext_idle.c`), on the state in
//! [`Scheduler`](crate::vm::world::Scheduler). Tasks that `dispatch` dispatches are pending until
//! it ends, or moves a task to the local queue, as in the kernel.
//!
//! | file | kfuncs |
//! |---|---|
//! | `dispatch` | dispatch queues and their iterators |
//! | `idle` | idle CPUs, masks of CPUs, which CPU a task gets |
//! | `state` | CPUs and their run queues, tasks, time, counters, ending the scheduler |

pub(super) mod dispatch;
pub(super) mod idle;
pub(super) mod state;

use super::cpumask::DEFAULT_SIZE;
use crate::vm::machine::{Call, HelperProblem, Machine};
use crate::vm::world::kernel::{KernelError, KernelObject};
use crate::vm::world::{Insert, Pending, QueueId, Scheduler};

type Result<T = u64> = std::result::Result<T, HelperProblem>;

/// The running scheduler.
fn scheduler<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Scheduler> {
    let none = || HelperProblem::Other("no scheduler runs: Vm::sched_ext starts one".to_owned());
    call.machine.world.scheduler_mut().ok_or_else(none)
}

/// Ends the scheduler for a mistake. The call itself goes on.
fn fail(call: &mut Call<'_>, why: String) -> Result {
    scheduler(call)?.fail(why);
    Ok(0)
}

/// Whether the running member may call the kfuncs of these sets (`scx_kf_allowed`). If not, that
/// ends the scheduler.
fn is_allowed(call: &mut Call<'_>, mask: u32) -> Result<bool> {
    let allowed = scheduler(call)?.phase.mask();
    if allowed & mask == 0 {
        let why = format!(
            "kfunc with mask {mask:#x} called from an operation only allowing {allowed:#x}"
        );
        fail(call, why)?;
    }
    Ok(allowed & mask != 0)
}

/// A task in the kernel's messages: `name[pid]`.
fn named(machine: &Machine, task: u64) -> String {
    let task = machine.world.kernel_memory().object_at(task);
    let comm = task.as_ref().and_then(|task| task.text("comm").ok());
    let pid = task.map_or(0, |task| task.get("pid").unwrap_or(0));
    format!("{}[{pid}]", comm.unwrap_or_default())
}

/// Puts a task into a queue of the running scheduler, or into the global one if that is not
/// possible, which ends the scheduler. A CPU whose local queue gets a task is asked to schedule if
/// it is idle, or if the task preempts what runs there (`dispatch_enqueue`).
pub(crate) fn dispatch_task(machine: &mut Machine, task: u64, id: QueueId, insert: Insert) {
    let refused = id.cpu().filter(|cpu| !may_run_on(machine, task, *cpu));
    let refused = refused.map(|cpu| {
        let task = named(machine, task);
        format!("SCX_DSQ_LOCAL[_ON] cannot move {task} to CPU {cpu}, where it may not run")
    });
    let Some(scheduler) = machine.world.scheduler_mut() else {
        return;
    };
    if let Some(why) = refused {
        scheduler.fail(why);
        scheduler.dispatch(task, QueueId::GLOBAL, Insert::default());
        return;
    }
    scheduler.dispatch(task, id, insert);
    let Some(cpu) = id.cpu() else { return };
    if insert.preempt {
        preempt(machine, cpu);
    } else if !scheduler.is_busy(cpu) {
        scheduler.kick(cpu);
    }
}

/// Puts the pending tasks into their queues (`flush_dispatch_buf`).
pub(crate) fn flush_dispatches(machine: &mut Machine) {
    let cpu = machine.world.cpu();
    let Some(scheduler) = machine.world.scheduler_mut() else {
        return;
    };
    let pending = std::mem::take(&mut scheduler.pending);
    let count = u32::try_from(pending.len()).unwrap_or(u32::MAX);
    scheduler.dispatched = scheduler.dispatched.saturating_add(count);
    for Pending {
        task,
        number,
        insert,
    } in pending
    {
        let state = machine.world.scheduler().and_then(|it| it.tasks.get(&task));
        // The task may have gone since: the kernel ignores it (`finish_dispatch`).
        if state.is_some_and(|state| state.owned) {
            dispatch_task(machine, task, QueueId::on(number, cpu), insert);
        }
    }
}

/// A CPU's `struct rq`: the kernel's variable `runqueues` if that is known. `cpu`, `curr` and the
/// length of the local queue are written each time, `curr` is null on an idle CPU. The other fields
/// are zero, or what the test wrote.
pub(crate) fn run_queue(
    machine: &mut Machine,
    cpu: u32,
) -> std::result::Result<KernelObject, KernelError> {
    let known = machine.world.scheduler_or_new().cpu(cpu).rq;
    let known = known.and_then(|at| machine.world.kernel_memory().object_at(at));
    let rq = match known {
        Some(rq) => rq,
        None => match machine.world.per_cpu("runqueues", cpu) {
            Ok(rq) => rq,
            Err(_) => machine.world.kernel("struct rq")?,
        },
    };
    let scheduler = machine.world.scheduler_or_new();
    scheduler.cpu(cpu).rq = Some(rq.address());
    let waiting = scheduler.queue(QueueId::local(cpu));
    let waiting = waiting.map_or(0, |queue| queue.tasks().count() as u64);
    let current = scheduler.current(cpu).unwrap_or(0);
    for (path, value) in [
        ("cpu", cpu.into()),
        ("curr", current),
        ("scx.local_dsq.nr", waiting),
    ] {
        rq.set_if_there(path, value)?;
    }
    Ok(rq)
}

/// Ends the slice of what runs on a CPU, and asks it to schedule.
fn preempt(machine: &mut Machine, cpu: u32) {
    let Some(scheduler) = machine.world.scheduler_mut() else {
        return;
    };
    scheduler.kick(cpu);
    let current = scheduler.current(cpu);
    let current = current.and_then(|task| machine.world.kernel_memory().object_at(task));
    if let Some(task) = current {
        // A kernel without the field has no sched_ext.
        let _ = task.set_if_there("scx.slice", 0);
    }
}

/// Creates a mask of those of the machine's CPUs that `is_in` names.
pub(crate) fn make_mask(
    machine: &Machine,
    is_in: impl Fn(u32) -> bool,
) -> std::result::Result<KernelObject, KernelError> {
    let mut bytes = vec![0; DEFAULT_SIZE as usize];
    for cpu in (0..machine.world.cpus()).filter(|cpu| is_in(*cpu)) {
        if let Some(byte) = bytes.get_mut(cpu as usize / 8) {
            *byte |= 1 << (cpu % 8);
        }
    }
    machine.world.kernel_memory().make_bytes("cpumask", &bytes)
}

/// The CPU in an argument, if there is one of this number (`ops_cpu_valid`).
fn cpu(call: &mut Call<'_>, arg: usize) -> Result<Option<u32>> {
    let number = call.arg_i32(arg);
    let cpu = u32::try_from(number).ok();
    let cpu = cpu.filter(|cpu| *cpu < call.machine.world.cpus());
    if cpu.is_none() {
        fail(call, format!("invalid CPU {number}"))?;
    }
    Ok(cpu)
}

/// Whether a task may run on a CPU, by its `cpus_ptr`.
pub(crate) fn may_run_on(machine: &Machine, task: u64, cpu: u32) -> bool {
    let task = machine.world.kernel_memory().object_at(task);
    match task.map_or(0, |task| task.get("cpus_ptr").unwrap_or(0)) {
        0 => true,
        mask => has(machine, mask, cpu),
    }
}

/// Whether the CPU mask at an address has a CPU.
fn has(machine: &Machine, mask: u64, cpu: u32) -> bool {
    let mut byte = [0];
    let at = mask.wrapping_add(u64::from(cpu / 8));
    let there = machine.space.probe(at, &mut byte).is_some();
    there && byte[0] >> (cpu % 8) & 1 == 1
}
