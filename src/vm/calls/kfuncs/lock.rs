//! Locks that may fail (`bpf_res_spin_lock`, `kernel/bpf/rqspinlock.c`): a deadlock or a
//! timeout is an error.

use std::time::{Duration, Instant};

use super::critical::{restore_interrupts, save_interrupts};
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// How long a program waits for another CPU (`RES_DEF_TIMEOUT`).
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// How often the lock is tested before the thread yields.
const SPINS: u32 = 64;

/// Swaps the lock's word and returns the old value.
fn swap(call: &Call<'_>, word: u64) -> Result {
    let old = call.machine.space.update(call.arg(1), 4, |_| word);
    old.map_err(|fault| HelperProblem::Access { arg: 1, fault })
}

pub(super) fn res_spin_lock(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    let since = Instant::now();
    for turn in 0u32.. {
        if swap(call, 1)? == 0 {
            call.machine.run.locks.push(at);
            break;
        }
        if call.machine.run.locks.contains(&at) {
            return Ok(Errno::EDEADLK.to_ret());
        }
        if call.machine.is_alone() || since.elapsed() > LOCK_TIMEOUT {
            return Ok(Errno::ETIMEDOUT.to_ret());
        }
        if turn < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
    Ok(0)
}

pub(super) fn res_spin_unlock(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    let locks = &mut call.machine.run.locks;
    let Some(held) = locks.iter().rposition(|held| *held == at) else {
        return Err(HelperProblem::Other("the lock is not held".to_owned()));
    };
    if held + 1 != locks.len() {
        let problem = "locks are released in another order than they were taken in";
        return Err(HelperProblem::Other(problem.to_owned()));
    }
    locks.pop();
    swap(call, 0).map(|_| 0)
}

pub(super) fn res_spin_lock_irqsave(call: &mut Call<'_>) -> Result {
    save_interrupts(call, 2)?;
    let result = res_spin_lock(call)?;
    if result != 0 {
        restore_interrupts(call, 2)?;
    }
    Ok(result)
}

pub(super) fn res_spin_unlock_irqrestore(call: &mut Call<'_>) -> Result {
    res_spin_unlock(call)?;
    restore_interrupts(call, 2)
}
