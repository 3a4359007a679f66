//! Tasks (`kernel/bpf/helpers.c`): the current one, and the `task_struct`s in kernel memory.

use super::kernel::{acquire, all, argument, field, object};
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Output};

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

/// All threads: pid, tgid and address.
pub(super) fn threads(call: &Call<'_>) -> std::result::Result<Vec<(u64, u64, u64)>, HelperProblem> {
    // First, since this creates the current task's object.
    let current = current(call)?;
    let mut found: Vec<_> = all(call, "task_struct")
        .iter()
        .map(|task| {
            let number = |path| task.get(path).unwrap_or(0);
            (number("pid"), number("tgid"), task.address())
        })
        .collect();
    if !found.iter().any(|(_, _, at)| *at == current) {
        // The kernel's types don't define the task's struct.
        let task = call.machine.world.task_now();
        found.push((task.pid().into(), task.tgid().into(), current));
    }
    Ok(found)
}

/// `bpf_task_acquire(task)`: kernel tasks are reference-counted, and the count of a visible
/// task is not 0.
pub(super) fn acquire_task(call: &mut Call<'_>) -> Result {
    let at = task(call, 1)?;
    acquire(call, at)
}

/// `bpf_task_from_pid` and, since there is one PID namespace, `bpf_task_from_vpid`.
pub(super) fn from_pid(call: &mut Call<'_>) -> Result {
    let pid = u64::from(call.arg_u32(1));
    let threads = threads(call)?;
    let found = threads.iter().find(|(number, ..)| *number == pid);
    let at = found.map_or(0, |(.., at)| *at);
    acquire(call, at)
}

/// `_NSIG`, the highest signal number.
const SIGNALS: u32 = 64;
/// `PF_KTHREAD | PF_EXITING`: such tasks get no signal.
const UNSIGNALLED: u64 = 0x0020_0000 | 0x0000_0004;

/// `bpf_send_signal_task(task, signal, type, value)`: to a thread (type 0) or its process
/// (type 1).
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
