//! The current task (`kernel/bpf/helpers.c`, `kernel/trace/bpf_trace.c`).

use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Output};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

pub(super) fn get_current_pid_tgid(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.task().pid_tgid())
}

pub(super) fn get_current_uid_gid(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.task().uid_gid())
}

/// `bpf_get_current_comm(buffer, size)`: the name, truncated to fit a NUL and padded with
/// NULs (`strscpy_pad`).
pub(super) fn get_current_comm(call: &mut Call<'_>) -> Result {
    let size = call.size(2);
    if size == 0 {
        return Err(HelperProblem::Other("argument 2 (size) is 0".into()));
    }
    call.check(1, size, AccessKind::Write)?;
    let comm = *call.machine.world.task().comm();
    let name = comm.iter().take_while(|byte| **byte != 0).take(size - 1);
    let mut bytes: Vec<u8> = name.copied().collect();
    bytes.resize(size, 0);
    call.write(1, &bytes).map(|()| 0)
}

pub(super) fn get_current_cgroup_id(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.task().cgroup_id())
}

/// `bpf_get_current_ancestor_cgroup_id(level)`: the root has level 0. Returns 0 for levels
/// outside the task's path, as the kernel does.
pub(super) fn get_current_ancestor_cgroup_id(call: &mut Call<'_>) -> Result {
    let level = usize::try_from(call.arg_i32(1)).ok();
    let cgroups = call.machine.world.task().cgroups();
    Ok(level
        .and_then(|level| cgroups.get(level))
        .copied()
        .unwrap_or(0))
}

/// Size of `struct bpf_pidns_info`: pid and tgid.
const PIDNS_INFO: usize = 8;

/// `bpf_get_ns_current_pid_tgid`: the mocked world has one namespace for all devices and
/// inodes.
pub(super) fn get_ns_current_pid_tgid(call: &mut Call<'_>) -> Result {
    let size = call.size(4);
    if size != PIDNS_INFO || call.arg(1) > u64::from(u32::MAX) {
        call.check(3, size, AccessKind::Write)?;
        return call
            .write(3, &vec![0; size])
            .map(|()| Errno::EINVAL.to_ret());
    }
    let task = call.machine.world.task();
    let (pid, tgid) = (task.pid().to_le_bytes(), task.tgid().to_le_bytes());
    call.write(3, &[pid, tgid].concat()).map(|()| 0)
}

pub(super) fn get_current_task(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.task_address()?)
}

pub(super) fn get_current_task_btf(call: &mut Call<'_>) -> Result {
    get_current_task(call)
}

/// `bpf_task_pt_regs(task)`: the registers saved on kernel entry.
pub(super) fn task_pt_regs(call: &mut Call<'_>) -> Result {
    let task = call.arg(1);
    let world = &call.machine.world;
    let is_there = world.kernel_memory().object_at(task).is_some();
    if !is_there && world.task_address()? != task {
        return Err(call.wrong(1, "a task"));
    }
    Ok(world.regs_of(task)?.address())
}

/// `_NSIG`, the highest signal number.
const SIGNALS: u32 = 64;

pub(super) fn send_signal(call: &mut Call<'_>) -> Result {
    let signal = call.arg_u32(1);
    if call.machine.world.task().tgid() == 1 {
        return Ok(Errno::EPERM.to_ret());
    }
    if signal > SIGNALS {
        return Ok(Errno::EINVAL.to_ret());
    }
    call.machine.output(Output::Signal(signal));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    #[test]
    fn ids_are_packed() {
        let mut bench = Bench::new();
        bench
            .machine
            .world
            .task()
            .set_pid(42)
            .set_tid(43)
            .set_uid(1)
            .set_gid(2)
            .set_cgroup_id(9);
        assert_eq!(bench.call(id::get_current_pid_tgid, []), Ok(42 << 32 | 43));
        assert_eq!(bench.call(id::get_current_uid_gid, []), Ok(2 << 32 | 1));
        assert_eq!(bench.call(id::get_current_cgroup_id, []), Ok(9));
        let ancestors = [0, 1, 2, u64::MAX];
        let ancestors =
            ancestors.map(|level| bench.call(id::get_current_ancestor_cgroup_id, [level]));
        assert_eq!(ancestors, [Ok(1), Ok(9), Ok(0), Ok(0)]);
        bench.machine.world.task().set_cgroups(&[4, 9]);
        let second = bench.call(id::get_current_ancestor_cgroup_id, [1]);
        assert_eq!(second, Ok(4));
    }

    #[test]
    fn the_name_fills_its_buffer() {
        let mut bench = Bench::new();
        bench.machine.world.task().set_comm("dd");
        let at = bench.memory(&[0xff; 20]);
        assert_eq!(bench.call(id::get_current_comm, [at, 20]), Ok(0));
        assert_eq!(bench.bytes(at, 20), [b"dd".as_slice(), &[0; 18]].concat());
        assert_eq!(bench.call(id::get_current_comm, [at, 2]), Ok(0));
        assert_eq!(bench.bytes(at, 3), b"d\0\0");
        assert!(bench.call(id::get_current_comm, [at, 0]).is_err());
        assert!(bench.call(id::get_current_comm, [at, 21]).is_err());
        assert!(
            bench
                .call(id::get_current_comm, [at, u64::from(u32::MAX)])
                .is_err()
        );
    }

    #[test]
    fn ids_in_a_namespace() {
        let mut bench = Bench::new();
        bench.machine.world.task().set_pid(42).set_tid(43);
        let at = bench.memory(&[0xff; 8]);
        assert_eq!(
            bench.call(id::get_ns_current_pid_tgid, [3, 4, at, 8]),
            Ok(0)
        );
        assert_eq!(bench.bytes(at, 8), [43, 0, 0, 0, 42, 0, 0, 0]);
        let wrong = bench.call(id::get_ns_current_pid_tgid, [3, 4, at, 4]);
        assert_eq!(wrong, Ok(Errno::EINVAL.to_ret()));
        assert_eq!(bench.bytes(at, 8), [0, 0, 0, 0, 42, 0, 0, 0]);
        let wrong = bench.call(id::get_ns_current_pid_tgid, [1 << 32, 4, at, 8]);
        assert_eq!(wrong, Ok(Errno::EINVAL.to_ret()));
    }

    #[test]
    fn the_task_has_one_address_without_bytes() {
        let mut bench = Bench::new();
        let task = bench.call(id::get_current_task, []).unwrap();
        assert_eq!(bench.call(id::get_current_task_btf, []), Ok(task));
        assert!(bench.machine.space.load(task, 8).is_err());
    }

    #[test]
    fn signals_are_noted() {
        let mut bench = Bench::new();
        assert_eq!(bench.call(id::send_signal, [9]), Ok(0));
        assert_eq!(
            bench.call(id::send_signal, [65]),
            Ok(Errno::EINVAL.to_ret())
        );
        bench.machine.world.task().set_pid(1);
        assert_eq!(
            bench.call(id::send_signal_thread, [9]),
            Ok(Errno::EPERM.to_ret())
        );
        assert_eq!(bench.machine.take_outputs(), [Output::Signal(9)]);
    }
}
