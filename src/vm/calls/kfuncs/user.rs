//! Strings in user memory (`bpf_copy_from_user_str`, `kernel/bpf/helpers.c`).

use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// Zero the rest of the buffer (`BPF_F_PAD_ZEROS`).
const PAD_ZEROS: u64 = 1;

pub(super) fn copy_from_user_str(call: &mut Call<'_>) -> Result {
    copy(call, call.arg(4))
}

/// `bpf_copy_from_user_task_str`: all tasks share the current task's user memory.
pub(super) fn copy_from_user_task_str(call: &mut Call<'_>) -> Result {
    copy(call, call.arg(5))
}

/// Copies the string at argument 3, truncated to the buffer, with a NUL; returns the number
/// of bytes.
fn copy(call: &mut Call<'_>, flags: u64) -> Result {
    let (size, from) = (call.size(2), call.arg(3));
    if flags & !PAD_ZEROS != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if size == 0 {
        return Ok(0);
    }
    call.check(1, size, AccessKind::Write)?;
    let mut text = Vec::new();
    let mut is_there = true;
    for at in 0..size as u64 - 1 {
        let byte = call.machine.world.user().read(from.wrapping_add(at), 1);
        is_there = byte.is_some();
        match byte.as_deref() {
            Some([byte]) if *byte != 0 => text.push(*byte),
            _ => break,
        }
    }
    let result = if is_there {
        text.len() as u64 + 1
    } else {
        text.clear();
        Errno::EFAULT.to_ret()
    };
    if flags & PAD_ZEROS != 0 {
        text.resize(size, 0);
    } else if is_there {
        text.push(0);
    }
    call.write(1, &text)?;
    Ok(result)
}
