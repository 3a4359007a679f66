//! Helpers that ask for the current task or act on it (`kernel/bpf/helpers.c`,
//! `kernel/trace/bpf_trace.c`).

use crate::util::Errno;
use crate::vm::fault::HelperProblem;
use crate::vm::machine::{Call, Returned};
use crate::vm::outcome::Output;

/// `sizeof(struct bpf_pidns_info)`.
const PIDNS_INFO: usize = 8;
/// Inode of the initial PID namespace (`PROC_PID_INIT_INO`,
/// `include/linux/proc_ns.h`), the one that the mocked task is in.
const INIT_PID_NAMESPACE: u64 = 0xefff_fffc;
/// The last signal (`_NSIG`, `include/uapi/asm-generic/signal.h`).
const LAST_SIGNAL: u32 = 64;

pub(super) fn get_current_pid_tgid(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.task().pid_tgid())
}

pub(super) fn get_current_uid_gid(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.task().uid_gid())
}

/// `strscpy_pad`: as much of the name as leaves room for a NUL, then NULs.
pub(super) fn get_current_comm(call: &mut Call<'_>) -> Returned {
    let size = call.arg_size(2);
    // Measures the buffer before any of `size` is allocated.
    call.check_writable(1, size)?;
    let mut buffer = vec![0; size];
    let comm = call.machine.world.task().comm();
    let kept = comm.iter().take_while(|byte| **byte != 0);
    for (to, from) in buffer.iter_mut().take(size.saturating_sub(1)).zip(kept) {
        *to = *from;
    }
    call.write(1, &buffer)?;
    Ok(0)
}

pub(super) fn get_current_cgroup_id(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.task().cgroup_id())
}

/// The mocked task's cgroup is the root of its hierarchy, or a child of the root,
/// whose id is 1; any deeper level has no ancestor.
pub(super) fn get_current_ancestor_cgroup_id(call: &mut Call<'_>) -> Returned {
    const ROOT: u64 = 1;
    let own = call.machine.world.task().cgroup_id();
    Ok(match call.arg_int(1) {
        0 => ROOT,
        1 if own != ROOT => own,
        _ => 0,
    })
}

/// There is one PID namespace, on whichever device the program thinks it is.
pub(super) fn get_ns_current_pid_tgid(call: &mut Call<'_>) -> Returned {
    let size = call.arg_size(4);
    call.check_writable(3, size)?;
    let known = u32::try_from(call.arg(1)).is_ok() && call.arg(2) == INIT_PID_NAMESPACE;
    if size != PIDNS_INFO || !known {
        call.write(3, &vec![0; size])?;
        return Ok(Errno::EINVAL.to_ret());
    }
    let task = call.machine.world.task();
    let info = [task.pid().to_le_bytes(), task.tgid().to_le_bytes()].concat();
    call.write(3, &info)?;
    Ok(0)
}

pub(super) fn get_current_task(call: &mut Call<'_>) -> Returned {
    let address = call.machine.task_address();
    address.map_err(|full| HelperProblem::Other(full.to_string()))
}

pub(super) fn get_current_task_btf(call: &mut Call<'_>) -> Returned {
    get_current_task(call)
}

/// To the process. The kernel keeps signals from init; signal 0 only asks whether
/// one could be sent.
pub(super) fn send_signal(call: &mut Call<'_>) -> Returned {
    match call.arg32(1) {
        _ if call.machine.world.task().tgid() == 1 => return Ok(Errno::EPERM.to_ret()),
        0 => {}
        signal @ 1..=LAST_SIGNAL => call.machine.output(Output::Signal(signal)),
        _ => return Ok(Errno::EINVAL.to_ret()),
    }
    Ok(0)
}

/// To the thread, which is the same to a test.
pub(super) fn send_signal_thread(call: &mut Call<'_>) -> Returned {
    send_signal(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn ids_are_packed() {
        let mut bench = Bench::new();
        let task = bench.machine.world.task();
        task.set_pid(42)
            .set_tid(43)
            .set_uid(5)
            .set_gid(6)
            .set_cgroup_id(77);
        assert_eq!(bench.ok(id::get_current_pid_tgid, []), 42 << 32 | 43);
        assert_eq!(bench.ok(id::get_current_uid_gid, []), 6 << 32 | 5);
        assert_eq!(bench.ok(id::get_current_cgroup_id, []), 77);
        for (level, id) in [(0, 1), (1, 77), (2, 0), (u64::MAX, 0)] {
            assert_eq!(bench.ok(id::get_current_ancestor_cgroup_id, [level]), id);
        }
    }

    #[test]
    fn the_name_is_cut_and_padded() {
        let mut bench = Bench::new();
        bench.machine.world.task().set_comm("worker");
        for (size, want) in [
            (16, &b"worker\0\0\0\0\0\0\0\0\0\0"[..]),
            (4, b"wor\0"),
            (1, b"\0"),
            (20, b"worker\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ] {
            let buffer = bench.bytes(&vec![0xff; size]);
            assert_eq!(bench.ok(id::get_current_comm, [buffer, size as u64]), 0);
            assert_eq!(bench.read(buffer, size), want);
        }
        let short = bench.bytes(&[0; 8]);
        let problem = bench.call(id::get_current_comm, [short, 16]).unwrap_err();
        assert!(
            problem
                .to_string()
                .starts_with("argument 1: writes 16 bytes")
        );
        assert!(bench.call(id::get_current_comm, [short, 1 << 31]).is_err());
    }

    #[test]
    fn the_namespace_has_to_match() {
        let mut bench = Bench::new();
        bench.machine.world.task().set_pid(9).set_tid(8);
        let info = bench.bytes(&[0xff; 8]);
        let found = bench.ok(
            id::get_ns_current_pid_tgid,
            [4, INIT_PID_NAMESPACE, info, 8],
        );
        assert_eq!(
            (found, bench.read(info, 8)),
            (0, vec![8, 0, 0, 0, 9, 0, 0, 0])
        );
        for args in [
            [4, 1, info, 8],
            [1 << 32, INIT_PID_NAMESPACE, info, 8],
            [4, INIT_PID_NAMESPACE, info, 4],
        ] {
            assert_eq!(
                bench.errno(id::get_ns_current_pid_tgid, args),
                Errno::EINVAL
            );
            assert_eq!(bench.read(info, 4), [0; 4]);
        }
    }

    #[test]
    fn the_task_stays_where_it_is() {
        let mut bench = Bench::new();
        let task = bench.ok(id::get_current_task, []);
        assert!(task.cast_signed() < 0);
        assert_eq!(bench.ok(id::get_current_task_btf, []), task);
        assert_eq!(bench.machine.pointer(task).to_string(), "task_struct");
    }

    #[test]
    fn signals_are_given_out() {
        let mut bench = Bench::new();
        assert_eq!(bench.ok(id::send_signal, [9]), 0);
        assert_eq!(bench.ok(id::send_signal_thread, [10]), 0);
        assert_eq!(bench.ok(id::send_signal, [0]), 0);
        assert_eq!(bench.errno(id::send_signal, [65]), Errno::EINVAL);
        bench.machine.world.task().set_pid(1);
        assert_eq!(bench.errno(id::send_signal, [9]), Errno::EPERM);
        let outputs = bench.machine.take_outputs();
        assert_eq!(outputs, [Output::Signal(9), Output::Signal(10)]);
    }
}
