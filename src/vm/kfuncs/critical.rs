//! Sections in which something may not happen: RCU read sections, preemption and
//! interrupts disabled (`kernel/bpf/helpers.c`). A program runs to its end here, so what
//! is left of them is that each begins and ends.

use super::super::fault::HelperProblem;
use super::super::helpers::Call;

type Result = std::result::Result<u64, HelperProblem>;

pub(super) fn rcu_read_lock(call: &mut Call<'_>) -> Result {
    call.machine.held().rcu += 1;
    Ok(0)
}

pub(super) fn rcu_read_unlock(call: &mut Call<'_>) -> Result {
    let held = call.machine.held();
    held.rcu = left(held.rcu, "the program is in no RCU read section")?;
    Ok(0)
}

pub(super) fn preempt_disable(call: &mut Call<'_>) -> Result {
    call.machine.held().preempt += 1;
    Ok(0)
}

pub(super) fn preempt_enable(call: &mut Call<'_>) -> Result {
    let held = call.machine.held();
    held.preempt = left(held.preempt, "the program has not disabled preemption")?;
    Ok(0)
}

fn left(depth: u32, problem: &str) -> std::result::Result<u32, HelperProblem> {
    let left = depth.checked_sub(1);
    left.ok_or_else(|| HelperProblem::Other(problem.to_owned()))
}

/// The flag of x86's flags register that says that interrupts are let through.
const INTERRUPTS: u64 = 1 << 9;

/// Saves the interrupts' state at an argument and disables them.
pub(super) fn save_interrupts(call: &mut Call<'_>, arg: usize) -> Result {
    let enabled = call.machine.held().interrupts.is_empty();
    let state = if enabled { INTERRUPTS } else { 0 };
    call.write(arg, &state.to_le_bytes())?;
    let at = call.arg(arg);
    call.machine.held().interrupts.push(at);
    Ok(0)
}

/// Brings back the state that was saved last.
pub(super) fn restore_interrupts(call: &mut Call<'_>, arg: usize) -> Result {
    let at = call.arg(arg);
    let interrupts = &mut call.machine.held().interrupts;
    if interrupts.last() == Some(&at) {
        interrupts.pop();
        return Ok(0);
    }
    let problem = if interrupts.contains(&at) {
        "interrupts are restored in another order than they were saved in"
    } else {
        "the interrupts' state was not saved there"
    };
    Err(HelperProblem::Other(problem.to_owned()))
}

pub(super) fn local_irq_save(call: &mut Call<'_>) -> Result {
    save_interrupts(call, 1)
}

pub(super) fn local_irq_restore(call: &mut Call<'_>) -> Result {
    restore_interrupts(call, 1)
}
