//! Loops, locks and tail calls.

use crate::spec::limits;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::maps::LockWait;
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// `bpf_tail_call`: engines implement it, since it does not return.
pub(super) fn tail_call(_call: &mut Call<'_>) -> Result {
    Err(HelperProblem::Other(
        "tail calls are executed by the engine, not by the helper".into(),
    ))
}

/// `bpf_loop(count, callback, context, flags)`: calls back with 0, 1, … until the callback
/// returns nonzero; returns the number of calls (`kernel/bpf/bpf_iter.c`).
///
/// Too many iterations return `E2BIG` in 32 bits, like the code that replaces the call in the
/// kernel (`inline_bpf_loop`, `kernel/bpf/verifier.c`). The kernel's C function returns 64
/// bits, but hardly any program calls it.
pub(super) fn loop_(call: &mut Call<'_>) -> Result {
    let (count, context) = (call.arg_u32(1), call.arg(3));
    if call.arg(4) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if count > limits::MAX_LOOPS {
        return Ok(Errno::E2BIG.to_ret() & u64::from(u32::MAX));
    }
    for index in 0..u64::from(count) {
        if call.call_back(2, [index, context, 0, 0, 0])? != 0 {
            return Ok(index + 1);
        }
    }
    Ok(count.into())
}

/// `bpf_spin_lock(lock)`: takes the lock, a word that is 1 while a program on some CPU holds
/// it. If the program holds the lock already, or no other CPU exists, the call would wait
/// forever and is an error.
pub(super) fn spin_lock(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    let mut lock_wait = LockWait::default();
    while swap_lock(call, 1)? != 0 {
        if call.machine.run.locks.contains(&at) || call.machine.is_alone() {
            let problem = "deadlock: the lock is already held, and no other CPU can release it";
            return Err(HelperProblem::Other(problem.into()));
        }
        if !lock_wait.wait() {
            let problem = "another CPU did not release the lock within 10 seconds";
            return Err(HelperProblem::Other(problem.into()));
        }
    }
    call.machine.run.locks.push(at);
    Ok(0)
}

pub(super) fn spin_unlock(call: &mut Call<'_>) -> Result {
    let at = call.arg(1);
    let held = call.machine.run.locks.iter().position(|held| *held == at);
    match held {
        Some(held) => {
            call.machine.run.locks.remove(held);
            swap_lock(call, 0).map(|_| 0)
        }
        // Access is checked first: for an address without a lock the access is the error.
        None => {
            call.check(1, 4, AccessKind::Atomic)?;
            Err(HelperProblem::Other("the lock is not held".into()))
        }
    }
}

/// Swaps the lock's word and returns the old value.
fn swap_lock(call: &Call<'_>, held: u64) -> Result {
    let old = call.machine.space.update(call.arg(1), 4, |_| held);
    old.map_err(|fault| HelperProblem::Access { arg: 1, fault })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    #[test]
    fn a_loop_counts_its_callbacks() {
        let mut bench = Bench::new();
        assert_eq!(bench.call(id::r#loop, [10, 1, 2, 0]), Ok(10));
        bench.callback = Box::new(|_, args| {
            assert_eq!(args[1..], [77, 0, 0, 0]);
            Some(u64::from(args[0] == 3))
        });
        assert_eq!(bench.call(id::r#loop, [10, 1, 77, 0]), Ok(4));
        assert_eq!(bench.call(id::r#loop, [0, 1, 77, 0]), Ok(0));
        assert_eq!(
            bench.call(id::r#loop, [1, 1, 77, 1]),
            Ok(Errno::EINVAL.to_ret())
        );
        let many = u64::from(limits::MAX_LOOPS) + 1;
        assert_eq!(bench.call(id::r#loop, [many, 1, 77, 0]), Ok(0xffff_fff9));
    }

    #[test]
    fn a_fault_in_the_callback_ends_the_loop() {
        let mut bench = Bench::new();
        bench.callback = Box::new(|_, _| None);
        let problem = bench.call(id::r#loop, [10, 1]).unwrap_err();
        assert!(matches!(problem, HelperProblem::Callback(_)));
    }

    #[test]
    fn a_lock_is_taken_once() {
        let mut bench = Bench::new();
        let lock = bench.memory(&[0; 8]);
        assert!(bench.call(id::spin_unlock, [lock]).is_err());
        assert_eq!(bench.call(id::spin_lock, [lock]), Ok(0));
        assert!(bench.call(id::spin_lock, [lock]).is_err());
        assert_eq!(bench.call(id::spin_unlock, [lock]), Ok(0));
        assert!(bench.call(id::spin_lock, [lock + 6]).is_err());
        assert!(bench.call(id::spin_lock, [0]).is_err());
        assert!(bench.call(id::spin_unlock, [lock]).is_err());
        let problem = bench.call(id::spin_unlock, [0]).unwrap_err();
        assert!(matches!(problem, HelperProblem::Access { .. }));
    }

    /// As after a fault: the next program must not wait for a program that ended.
    #[test]
    fn a_program_that_ends_holds_no_lock() {
        let mut bench = Bench::new();
        let lock = bench.memory(&[0; 8]);
        assert_eq!(bench.call(id::spin_lock, [lock]), Ok(0));
        bench.machine.leave();
        assert_eq!(bench.bytes(lock, 4), [0; 4]);
        assert_eq!(bench.call(id::spin_lock, [lock]), Ok(0));
    }
}
