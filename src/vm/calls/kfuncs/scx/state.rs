//! CPUs, tasks and time as a scheduler asks for them; how it ends.

use super::super::super::helpers::printed;
use super::super::cgroup;
use super::super::kernel::acquire;
use super::super::task::task;
use super::{Result, cpu, fail, preempt, run_queue, scheduler};
use crate::vm::machine::{Call, HelperProblem, Output};
use crate::vm::world::kernel::KernelError;
use crate::vm::world::{Events, ExitKind};

/// `SCX_KICK_IDLE`, `SCX_KICK_PREEMPT`.
const IDLE: u64 = 1;
const PREEMPT: u64 = 2;
/// The capacity of each CPU (`SCHED_CAPACITY_SCALE`).
const CAPACITY: u32 = 1024;

/// `scx_bpf_kick_cpu(cpu, flags)`.
pub(in crate::vm::calls::kfuncs) fn kick_cpu(call: &mut Call<'_>) -> Result {
    let flags = call.arg(2);
    let Some(cpu) = cpu(call, 1)? else {
        return Ok(0);
    };
    let scheduler = scheduler(call)?;
    if flags & IDLE != 0 && scheduler.is_busy(cpu) {
        return Ok(0);
    }
    if flags & PREEMPT != 0 {
        preempt(call.machine, cpu);
    } else {
        scheduler.kick(cpu);
    }
    Ok(0)
}

/// `scx_bpf_nr_cpu_ids()`.
pub(in crate::vm::calls::kfuncs) fn nr_cpu_ids(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.cpus().into())
}

/// `scx_bpf_nr_node_ids()`.
pub(in crate::vm::calls::kfuncs) fn nr_node_ids(_call: &mut Call<'_>) -> Result {
    Ok(1)
}

/// `scx_bpf_cpu_node(cpu)`: there is one node.
pub(in crate::vm::calls::kfuncs) fn cpu_node(call: &mut Call<'_>) -> Result {
    cpu(call, 1).map(|_| 0)
}

/// `scx_bpf_cpuperf_cap(cpu)`.
pub(in crate::vm::calls::kfuncs) fn cpuperf_cap(call: &mut Call<'_>) -> Result {
    cpu(call, 1).map(|_| CAPACITY.into())
}

/// `scx_bpf_cpuperf_cur(cpu)`: what was set last.
pub(in crate::vm::calls::kfuncs) fn cpuperf_cur(call: &mut Call<'_>) -> Result {
    let Some(cpu) = cpu(call, 1)? else {
        return Ok(CAPACITY.into());
    };
    let state = scheduler(call)?.cpus.get(cpu as usize);
    Ok(state.map_or(CAPACITY, |state| state.performance).into())
}

/// `scx_bpf_cpuperf_set(cpu, performance)`.
pub(in crate::vm::calls::kfuncs) fn cpuperf_set(call: &mut Call<'_>) -> Result {
    let performance = call.arg_u32(2);
    if performance > CAPACITY {
        let number = call.arg_i32(1);
        let why = format!("Invalid cpuperf target {performance} for CPU {number}");
        return fail(call, why);
    }
    if let Some(cpu) = cpu(call, 1)?
        && let Some(state) = scheduler(call)?.cpus.get_mut(cpu as usize)
    {
        state.performance = performance;
    }
    Ok(0)
}

/// `scx_bpf_task_running(task)`.
pub(in crate::vm::calls::kfuncs) fn task_running(call: &mut Call<'_>) -> Result {
    let task = task(call, 1)?;
    let state = scheduler(call)?.tasks.get(&task);
    Ok(state.is_some_and(|state| state.running).into())
}

/// `scx_bpf_task_cpu(task)`.
pub(in crate::vm::calls::kfuncs) fn task_cpu(call: &mut Call<'_>) -> Result {
    let task = task(call, 1)?;
    let state = scheduler(call)?.tasks.get(&task);
    Ok(state.map_or(0, |state| state.cpu).into())
}

/// `scx_bpf_cpu_curr(cpu)`: null on an idle CPU, where the kernel has its idle task.
pub(in crate::vm::calls::kfuncs) fn cpu_curr(call: &mut Call<'_>) -> Result {
    let Some(cpu) = cpu(call, 1)? else {
        return Ok(0);
    };
    Ok(scheduler(call)?.current(cpu).unwrap_or(0))
}

/// A CPU's run queue.
fn rq(call: &mut Call<'_>, cpu: u32) -> Result {
    let rq = run_queue(call.machine, cpu);
    let rq = rq.map_err(|why| HelperProblem::Other(why.to_string()))?;
    Ok(rq.address())
}

/// `scx_bpf_cpu_rq(cpu)`.
pub(in crate::vm::calls::kfuncs) fn cpu_rq(call: &mut Call<'_>) -> Result {
    match cpu(call, 1)? {
        Some(cpu) => rq(call, cpu),
        None => Ok(0),
    }
}

/// `scx_bpf_locked_rq()`: the run queue of the CPU or the task that the member is called for.
/// `select_cpu`, `init_task`, `init` and `exit` are called without its lock.
pub(in crate::vm::calls::kfuncs) fn locked_rq(call: &mut Call<'_>) -> Result {
    match scheduler(call)?.locked {
        Some(cpu) => rq(call, cpu),
        None => fail(call, "accessing rq without holding rq lock".to_owned()),
    }
}

/// `scx_bpf_events(&events, their size)`: the counters of [`Events`], in the kernel's structure of
/// which as many bytes are written as the program has. The other counters are 0.
pub(in crate::vm::calls::kfuncs) fn events(call: &mut Call<'_>) -> Result {
    let Events {
        select_cpu_fallback,
        dispatch_keep_last,
        refill_slice_dfl,
    } = scheduler(call)?.events;
    let bytes = || -> std::result::Result<_, KernelError> {
        let stats = call.machine.world.kernel("struct scx_event_stats")?;
        for (path, count) in [
            ("SCX_EV_SELECT_CPU_FALLBACK", select_cpu_fallback),
            ("SCX_EV_DISPATCH_KEEP_LAST", dispatch_keep_last),
            ("SCX_EV_REFILL_SLICE_DFL", refill_slice_dfl),
        ] {
            stats.set_if_there(path, count)?;
        }
        let bytes = stats.bytes();
        stats.free();
        Ok(bytes)
    };
    let mut bytes = bytes().map_err(|why| HelperProblem::Other(why.to_string()))?;
    bytes.truncate(usize::try_from(call.arg(2)).unwrap_or(usize::MAX));
    call.write(1, &bytes)?;
    Ok(0)
}

/// `scx_bpf_task_cgroup(task)`.
pub(in crate::vm::calls::kfuncs) fn task_cgroup(call: &mut Call<'_>) -> Result {
    let task = task(call, 1)?;
    let at = cgroup::of_task(call, task)?;
    acquire(call, at)
}

/// `scx_bpf_now()`.
pub(in crate::vm::calls::kfuncs) fn now(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.time().monotonic_ns())
}

/// `scx_bpf_exit_bstr(code, format, data, its size)`.
pub(in crate::vm::calls::kfuncs) fn exit_bstr(call: &mut Call<'_>) -> Result {
    let (code, text) = (call.arg(1).cast_signed(), printed(call, 2)?);
    scheduler(call)?.end(ExitKind::UnregBpf, code, text);
    Ok(0)
}

/// `scx_bpf_error_bstr(format, data, its size)`.
pub(in crate::vm::calls::kfuncs) fn error_bstr(call: &mut Call<'_>) -> Result {
    let text = printed(call, 1)?;
    scheduler(call)?.end(ExitKind::ErrorBpf, 0, text);
    Ok(0)
}

/// `scx_bpf_dump_bstr(format, data, its size)`: a line of the trace here.
pub(in crate::vm::calls::kfuncs) fn dump_bstr(call: &mut Call<'_>) -> Result {
    let text = printed(call, 1)?;
    call.machine.output(Output::Printk(text));
    Ok(0)
}
