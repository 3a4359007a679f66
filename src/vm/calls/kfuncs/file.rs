//! Files (`fs/bpf_fs_kfuncs.c`).

use super::super::helpers::kernel::d_path;
use super::kernel::{acquire, field};
use super::task::task;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// `bpf_get_task_exe_file(task)`: the file that a task executes; null for a kernel thread.
pub(super) fn exe_file(call: &mut Call<'_>) -> Result {
    let at = task(call, 1)?;
    let file = field(call, at, "mm.exe_file");
    acquire(call, file)
}

/// `bpf_path_d_path(path, buffer, size)`: the path's name as from `bpf_d_path`, but an empty
/// buffer is an error.
pub(super) fn path_d_path(call: &mut Call<'_>) -> Result {
    match call.size(3) {
        0 => Ok(Errno::EINVAL.to_ret()),
        _ => d_path(call),
    }
}
