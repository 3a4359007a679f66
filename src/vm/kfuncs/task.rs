//! Tasks (`kernel/bpf/helpers.c`). The tasks that there are: the current one, and the
//! `task_struct`s in kernel memory.

use super::super::fault::HelperProblem;
use super::super::helpers::Call;
use super::super::outcome::Output;
use super::kernel::{acquire, all, argument, field, object};
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

const TASK: &str = "a struct task_struct";

/// The task in an argument.
pub(super) fn task(call: &Call<'_>, arg: usize) -> Result {
    argument(call, arg, "task_struct", TASK)
}

/// The current task's address.
pub(super) fn current(call: &Call<'_>) -> Result {
    let at = call.machine.world.task_address();
    at.map_err(|error| HelperProblem::Other(error.to_string()))
}

/// The threads that there are: pid, tgid and address.
pub(super) fn threads(call: &Call<'_>) -> std::result::Result<Vec<(u64, u64, u64)>, HelperProblem> {
    // Asked for first, so that it is there.
    let current = current(call)?;
    let mut found: Vec<_> = all(call, "task_struct")
        .iter()
        .map(|task| {
            let number = |path| task.get(path).unwrap_or(0);
            (number("pid"), number("tgid"), task.address())
        })
        .collect();
    if !found.iter().any(|(_, _, at)| *at == current) {
        // Nobody defined its struct.
        let task = call.machine.world.task_now();
        found.push((task.pid().into(), task.tgid().into(), current));
    }
    Ok(found)
}

/// Kernel tasks have a count of users, which is not 0 while somebody sees them.
pub(super) fn acquire_task(call: &mut Call<'_>) -> Result {
    let at = task(call, 1)?;
    acquire(call, at)
}

/// There is one namespace of process numbers: `bpf_task_from_vpid` is this, too.
pub(super) fn from_pid(call: &mut Call<'_>) -> Result {
    let pid = u64::from(call.arg_u32(1));
    let threads = threads(call)?;
    let found = threads.iter().find(|(number, ..)| *number == pid);
    let at = found.map_or(0, |(.., at)| *at);
    acquire(call, at)
}

/// `_NSIG`, the highest signal number.
const SIGNALS: u32 = 64;
/// A kernel thread; a task that exits.
const UNSIGNALLED: u64 = 0x0020_0000 | 0x0000_0004;

/// `(task, signal, type, value)`: to a thread (type 0) or its process (type 1).
pub(super) fn send_signal(call: &mut Call<'_>) -> Result {
    let (at, signal) = (task(call, 1)?, call.arg_u32(2));
    if call.arg_u32(3) > 1 || signal > SIGNALS {
        return Ok(Errno::EINVAL.to_ret());
    }
    let flags = object(call, at).map_or(0, |task| task.get("flags").unwrap_or(0));
    if flags & UNSIGNALLED != 0 || field(call, at, "tgid") == 1 {
        return Ok(Errno::EPERM.to_ret());
    }
    call.machine.output(Output::Signal(signal));
    Ok(0)
}
