//! Critical sections: RCU read sections, preemption and interrupts disabled
//! (`kernel/bpf/helpers.c`). A program is not preempted here, so only the balance of entry
//! and exit is checked.

use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

pub(super) fn rcu_read_lock(call: &mut Call<'_>) -> Result {
    call.machine.acquired().rcu += 1;
    Ok(0)
}

pub(super) fn rcu_read_unlock(call: &mut Call<'_>) -> Result {
    let acquired = call.machine.acquired();
    acquired.rcu = left(acquired.rcu, "the program is in no RCU read section")?;
    Ok(0)
}

pub(super) fn preempt_disable(call: &mut Call<'_>) -> Result {
    call.machine.acquired().preempt += 1;
    Ok(0)
}

pub(super) fn preempt_enable(call: &mut Call<'_>) -> Result {
    let acquired = call.machine.acquired();
    acquired.preempt = left(acquired.preempt, "the program has not disabled preemption")?;
    Ok(0)
}

fn left(depth: u32, problem: &str) -> std::result::Result<u32, HelperProblem> {
    let left = depth.checked_sub(1);
    left.ok_or_else(|| HelperProblem::Other(problem.to_owned()))
}

/// The interrupt flag in x86's flags register.
const INTERRUPTS: u64 = 1 << 9;

/// Saves the interrupt state at the address in an argument and disables interrupts.
pub(super) fn save_interrupts(call: &mut Call<'_>, arg: usize) -> Result {
    let enabled = call.machine.acquired().interrupts.is_empty();
    let state = if enabled { INTERRUPTS } else { 0 };
    call.write(arg, &state.to_le_bytes())?;
    let at = call.arg(arg);
    call.machine.acquired().interrupts.push(at);
    Ok(0)
}

/// Restores the interrupt state that was saved last.
pub(super) fn restore_interrupts(call: &mut Call<'_>, arg: usize) -> Result {
    let at = call.arg(arg);
    let interrupts = &mut call.machine.acquired().interrupts;
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
