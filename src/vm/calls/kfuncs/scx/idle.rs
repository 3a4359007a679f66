//! Idle CPUs and masks. The lowest CPU is taken of several; the kernel distributes them, and
//! prefers those whose siblings are idle, and near ones.

use super::super::kernel::{acquire, release};
use super::super::task::task;
use super::{Result, cpu, has, make_mask, may_run_on, scheduler};
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};

/// Claims the first idle CPU, `first` before all others.
fn claim(
    call: &mut Call<'_>,
    first: Option<u32>,
    is_wanted: impl Fn(&Call<'_>, u32) -> bool,
) -> Result<Option<u32>> {
    let cpus = first.into_iter().chain(0..call.machine.world.cpus());
    let wanted: Vec<_> = cpus.filter(|cpu| is_wanted(call, *cpu)).collect();
    let scheduler = scheduler(call)?;
    Ok(wanted.into_iter().find(|cpu| scheduler.claim(*cpu)))
}

/// `scx_bpf_select_cpu_dfl(task, previous, flags, &is_idle)`.
pub(in crate::vm::calls::kfuncs) fn select_cpu_dfl(call: &mut Call<'_>) -> Result {
    let task = task(call, 1)?;
    let Some(previous) = cpu(call, 2)? else {
        call.write(4, &[0])?;
        return Ok(Errno::EINVAL.to_ret());
    };
    let found = claim(call, Some(previous), |call, cpu| {
        may_run_on(call.machine, task, cpu)
    })?;
    call.write(4, &[u8::from(found.is_some())])?;
    Ok(found.unwrap_or(previous).into())
}

/// `scx_bpf_select_cpu_and(task, previous, flags, mask, pick)`.
pub(in crate::vm::calls::kfuncs) fn select_cpu_and(call: &mut Call<'_>) -> Result {
    let (task, mask) = (task(call, 1)?, call.arg(4));
    let Some(previous) = cpu(call, 2)? else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let is_wanted =
        |call: &Call<'_>, cpu| may_run_on(call.machine, task, cpu) && has(call.machine, mask, cpu);
    let found = claim(call, Some(previous), is_wanted)?;
    Ok(found.map_or(Errno::EBUSY.to_ret(), u64::from))
}

/// `scx_bpf_pick_idle_cpu(mask, flags)`.
pub(in crate::vm::calls::kfuncs) fn pick_idle_cpu(call: &mut Call<'_>) -> Result {
    let mask = call.arg(1);
    let found = claim(call, None, |call, cpu| has(call.machine, mask, cpu))?;
    Ok(found.map_or(Errno::EBUSY.to_ret(), u64::from))
}

/// `scx_bpf_pick_any_cpu(mask, flags)`: an idle one, or any.
pub(in crate::vm::calls::kfuncs) fn pick_any_cpu(call: &mut Call<'_>) -> Result {
    let mask = call.arg(1);
    if let Some(idle) = claim(call, None, |call, cpu| has(call.machine, mask, cpu))? {
        return Ok(idle.into());
    }
    let mut cpus = 0..call.machine.world.cpus();
    let any = cpus.find(|cpu| has(call.machine, mask, *cpu));
    Ok(any.map_or(Errno::EBUSY.to_ret(), u64::from))
}

/// `scx_bpf_test_and_clear_cpu_idle(cpu)`.
pub(in crate::vm::calls::kfuncs) fn test_and_clear_cpu_idle(call: &mut Call<'_>) -> Result {
    match cpu(call, 1)? {
        Some(cpu) => Ok(scheduler(call)?.claim(cpu).into()),
        None => Ok(0),
    }
}

/// A mask of these CPUs, in memory until it is put.
fn mask(call: &mut Call<'_>, is_in: impl Fn(u32) -> bool) -> Result {
    let made = make_mask(call.machine, is_in);
    let made = made.map_err(|why| HelperProblem::Other(why.to_string()))?;
    acquire(call, made.address())
}

/// `scx_bpf_get_idle_cpumask()`; without siblings also the mask of idle cores.
pub(in crate::vm::calls::kfuncs) fn get_idle_cpumask(call: &mut Call<'_>) -> Result {
    let cpus = scheduler(call)?.cpus.clone();
    mask(call, |cpu| {
        cpus.get(cpu as usize).is_some_and(|cpu| cpu.idle)
    })
}

/// `scx_bpf_get_online_cpumask()`, `scx_bpf_get_possible_cpumask()`.
pub(in crate::vm::calls::kfuncs) fn get_all_cpumask(call: &mut Call<'_>) -> Result {
    mask(call, |_| true)
}

/// `scx_bpf_put_cpumask(mask)`, `scx_bpf_put_idle_cpumask(mask)`.
pub(in crate::vm::calls::kfuncs) fn put_cpumask(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    release(call)?;
    if let Some(mask) = call.machine.world.kernel_memory().object_at(at) {
        mask.free();
    }
    Ok(0)
}
