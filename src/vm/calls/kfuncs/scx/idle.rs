//! Idle CPUs and masks. The lowest CPU is taken of several; the kernel distributes them, and
//! prefers those whose siblings are idle, and near ones.

use super::super::kernel::{acquire, release};
use super::super::task::task;
use super::{Result, cpu, fail, has, make_mask, may_run_on, scheduler};
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};

/// No node in particular.
const NUMA_NO_NODE: i32 = -1;
/// What the kernel says of a choice among all CPUs.
const PER_NODE: &str = "per-node idle tracking is enabled";

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

/// The node in an argument, or what a kfunc returns for it (`validate_node`). There is one node.
fn node(call: &mut Call<'_>, arg: usize) -> Result<std::result::Result<(), Errno>> {
    let node = call.arg_i32(arg);
    if !scheduler(call)?.per_node {
        fail(call, "per-node idle tracking is disabled".to_owned())?;
        return Ok(Err(Errno::EOPNOTSUPP));
    }
    match node {
        0 => Ok(Ok(())),
        NUMA_NO_NODE => Ok(Err(Errno::ENOENT)),
        _ => {
            fail(call, format!("invalid node {node}"))?;
            Ok(Err(Errno::EINVAL))
        }
    }
}

/// Whether idle CPUs are tracked for all nodes together. If not, that ends the scheduler.
fn is_global(call: &mut Call<'_>, why: &str) -> Result<bool> {
    let per_node = scheduler(call)?.per_node;
    if per_node {
        fail(call, why.to_owned())?;
    }
    Ok(!per_node)
}

fn pick_idle(call: &mut Call<'_>) -> Result {
    let mask = call.arg(1);
    let found = claim(call, None, |call, cpu| has(call.machine, mask, cpu))?;
    Ok(found.map_or(Errno::EBUSY.to_ret(), u64::from))
}

fn pick_any(call: &mut Call<'_>) -> Result {
    let mask = call.arg(1);
    if let Some(idle) = claim(call, None, |call, cpu| has(call.machine, mask, cpu))? {
        return Ok(idle.into());
    }
    let mut cpus = 0..call.machine.world.cpus();
    let any = cpus.find(|cpu| has(call.machine, mask, *cpu));
    Ok(any.map_or(Errno::EBUSY.to_ret(), u64::from))
}

/// `scx_bpf_pick_idle_cpu(mask, flags)`. `SCX_PICK_IDLE_CORE` asks for a core whose CPUs are all
/// idle; here each CPU is a core.
pub(in crate::vm::calls::kfuncs) fn pick_idle_cpu(call: &mut Call<'_>) -> Result {
    match is_global(call, PER_NODE)? {
        true => pick_idle(call),
        false => Ok(Errno::EBUSY.to_ret()),
    }
}

/// `scx_bpf_pick_idle_cpu_node(mask, node, flags)`. With `SCX_PICK_IDLE_IN_NODE` only from this
/// node; there is no other one.
pub(in crate::vm::calls::kfuncs) fn pick_idle_cpu_node(call: &mut Call<'_>) -> Result {
    match node(call, 2)? {
        Ok(()) => pick_idle(call),
        Err(errno) => Ok(errno.to_ret()),
    }
}

/// `scx_bpf_pick_any_cpu(mask, flags)`: an idle one, or any.
pub(in crate::vm::calls::kfuncs) fn pick_any_cpu(call: &mut Call<'_>) -> Result {
    match is_global(call, PER_NODE)? {
        true => pick_any(call),
        false => Ok(Errno::EBUSY.to_ret()),
    }
}

/// `scx_bpf_pick_any_cpu_node(mask, node, flags)`.
pub(in crate::vm::calls::kfuncs) fn pick_any_cpu_node(call: &mut Call<'_>) -> Result {
    match node(call, 2)? {
        Ok(()) => pick_any(call),
        Err(errno) => Ok(errno.to_ret()),
    }
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

/// A mask of the idle CPUs, empty if `is_there` is not set.
fn idle_mask(call: &mut Call<'_>, is_there: bool) -> Result {
    let cpus = scheduler(call)?.cpus.clone();
    mask(call, |cpu| {
        let cpu = cpus.get(cpu as usize);
        is_there && cpu.is_some_and(|cpu| cpu.idle)
    })
}

/// `scx_bpf_get_idle_cpumask()`; without siblings also the mask of idle cores.
pub(in crate::vm::calls::kfuncs) fn get_idle_cpumask(call: &mut Call<'_>) -> Result {
    let is_global = is_global(call, "SCX_OPS_BUILTIN_IDLE_PER_NODE enabled")?;
    idle_mask(call, is_global)
}

/// `scx_bpf_get_idle_cpumask_node(node)`, and the mask of idle cores.
pub(in crate::vm::calls::kfuncs) fn get_idle_cpumask_node(call: &mut Call<'_>) -> Result {
    let is_there = node(call, 1)?.is_ok();
    idle_mask(call, is_there)
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
