//! Helpers about the flow of a program (`kernel/bpf/bpf_iter.c`,
//! `kernel/bpf/helpers.c`).

use crate::util::Errno;
use crate::vm::fault::HelperProblem;
use crate::vm::machine::{Call, Returned};

/// The most iterations of `bpf_loop` (`BPF_MAX_LOOPS`, `include/linux/bpf.h`).
const MAX_LOOPS: u32 = 8 * 1024 * 1024;
/// `sizeof(struct bpf_spin_lock)`.
const SPIN_LOCK: usize = 4;

/// Engines leave the program themselves on a tail call. One that asks for a body
/// has none of its own.
pub(super) fn tail_call(_: &mut Call<'_>) -> Returned {
    Err(HelperProblem::Other(
        "a tail call is the engine's to make".to_owned(),
    ))
}

/// `(count, function, its second argument, flags)`: how often the function was
/// called; its result of 1 ends the loop.
pub(super) fn loop_(call: &mut Call<'_>) -> Returned {
    if call.arg(4) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (count, context) = (call.arg32(1), call.arg(3));
    if count > MAX_LOOPS {
        return Ok(Errno::E2BIG.to_ret());
    }
    for at in 0..u64::from(count) {
        if call.call_back(2, [at, context, 0, 0, 0])? != 0 {
            return Ok(at + 1);
        }
    }
    Ok(count.into())
}

/// One program runs at a time on a machine, so that a lock is always free. It has
/// to be there, though.
pub(super) fn spin_lock(call: &mut Call<'_>) -> Returned {
    call.check_writable(1, SPIN_LOCK)?;
    Ok(0)
}

/// As [`spin_lock`].
pub(super) fn spin_unlock(call: &mut Call<'_>) -> Returned {
    spin_lock(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn loops_count_and_stop() {
        let mut bench = Bench::new();
        assert_eq!(bench.ok(id::r#loop, [3, 7, 0xabc, 0]), 3);
        let calls = bench.calls();
        assert_eq!(calls, [0, 1, 2].map(|at| [at, 0xabc, 0, 0, 0]));
        bench.callback(|_, args| Ok(u64::from(args[0] == 4)));
        assert_eq!(bench.ok(id::r#loop, [10, 7, 0, 0]), 5);
        assert_eq!(bench.ok(id::r#loop, [1 << 32, 7, 0, 0]), 0, "a u32");
    }

    #[test]
    fn loops_have_limits() {
        let mut bench = Bench::new();
        let over = u64::from(MAX_LOOPS) + 1;
        assert_eq!(bench.errno(id::r#loop, [1, 7, 0, 1]), Errno::EINVAL);
        assert_eq!(bench.errno(id::r#loop, [over, 7, 0, 1]), Errno::EINVAL);
        assert_eq!(bench.errno(id::r#loop, [over, 7, 0, 0]), Errno::E2BIG);
        bench.callback(|_, _| Ok(1));
        assert_eq!(bench.ok(id::r#loop, [over - 1, 7, 0, 0]), 1);
    }

    #[test]
    fn a_lock_is_free_but_has_to_be_there() {
        let mut bench = Bench::new();
        let lock = bench.bytes(&[0; 4]);
        assert_eq!(bench.ok(id::spin_lock, [lock]), 0);
        assert_eq!(bench.ok(id::spin_unlock, [lock]), 0);
        let text = bench.cstr("abc");
        assert!(bench.call(id::spin_lock, [text]).is_err());
        assert!(bench.call(id::spin_unlock, [lock + 1]).is_err());
    }

    #[test]
    fn tail_calls_are_the_engines() {
        let problem = Bench::new().call(id::tail_call, []).unwrap_err();
        assert!(problem.to_string().contains("engine"));
    }
}
