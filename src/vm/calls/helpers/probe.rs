//! Memory reads that may fault (`kernel/trace/bpf_trace.c`, `mm/maccess.c`,
//! `arch/x86/mm/maccess.c`).
//!
//! Kernel memory is everything in the machine's address space, accessible to the program or
//! not; user memory is that of the mocked task.

use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Machine};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;
type Copied = std::result::Result<Vec<u8>, Errno>;

/// Upper bound of user addresses (`TASK_SIZE_MAX` on x86-64 with four-level paging).
const TASK_SIZE: u64 = 0x7fff_ffff_f000;
/// Bytes of a kernel string that are read at once.
const CHUNK: usize = 64;
/// Bit 63, set in all kernel addresses; other addresses above the user's are not canonical.
const KERNEL: u64 = 1 << 63;

/// An address space to read from.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) enum From {
    /// The kernel's.
    Kernel,
    /// The current task's.
    User,
}

impl From {
    /// The address space that the old helpers choose by the address
    /// (`bpf_probe_read_compat`).
    pub(super) const fn address(address: u64) -> Self {
        if address < TASK_SIZE {
            Self::User
        } else {
            Self::Kernel
        }
    }

    /// Copies `len` bytes; `ERANGE` for an address outside the kernel's, `EFAULT` if the
    /// bytes are not mapped.
    pub(in crate::vm) fn copy(self, machine: &mut Machine, at: u64, len: usize) -> Copied {
        match self {
            Self::User => machine.world.user().read(at, len).ok_or(Errno::EFAULT),
            Self::Kernel => {
                may_be_kernel(at)?;
                if len == 0 {
                    return Ok(Vec::new());
                }
                let mut bytes = vec![0; len];
                let read = machine.space.probe(at, &mut bytes);
                read.map(|()| bytes).ok_or(Errno::EFAULT)
            }
        }
    }

    /// Copies a string and its NUL, at most `size` bytes; a truncated string gets a NUL as
    /// its last byte.
    pub(in crate::vm) fn copy_str(self, machine: &mut Machine, at: u64, size: usize) -> Copied {
        let mut bytes = Vec::new();
        if matches!(self, Self::Kernel) && size > 0 {
            may_be_kernel(at)?;
        }
        while bytes.len() < size && bytes.last() != Some(&0) {
            let next = at.wrapping_add(bytes.len() as u64);
            match self {
                Self::User => {
                    let run = machine.world.user().run(next).ok_or(Errno::EFAULT)?;
                    let run = run.get(..size - bytes.len()).unwrap_or(run);
                    let end = run.iter().position(|byte| *byte == 0).map(|nul| nul + 1);
                    bytes.extend_from_slice(run.get(..end.unwrap_or(run.len())).unwrap_or(run));
                }
                Self::Kernel => {
                    let mut chunk = [0; CHUNK];
                    let some = (size - bytes.len()).min(CHUNK);
                    // Near the end of mapped memory, byte by byte.
                    let len = [some, 1].into_iter().find(|len| {
                        let chunk = chunk.get_mut(..*len).unwrap_or_default();
                        machine.space.probe(next, chunk).is_some()
                    });
                    let read = chunk.get(..len.ok_or(Errno::EFAULT)?).unwrap_or_default();
                    let end = read.iter().position(|byte| *byte == 0);
                    let end = end.map_or(read.len(), |nul| nul + 1);
                    bytes.extend_from_slice(read.get(..end).unwrap_or_default());
                }
            }
        }
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        Ok(bytes)
    }
}

/// Checks that the kernel would read at this address (`copy_from_kernel_nofault_allowed`).
const fn may_be_kernel(at: u64) -> std::result::Result<(), Errno> {
    if at & KERNEL == 0 {
        Err(Errno::ERANGE)
    } else {
        Ok(())
    }
}

/// Reads `size` bytes; zeros and an error on failure.
fn read(call: &mut Call<'_>, from: From) -> Result {
    let size = call.size(2);
    call.check(1, size, AccessKind::Write)?;
    let address = call.arg(3);
    match from.copy(call.machine, address, size) {
        Ok(bytes) => call.write(1, &bytes).map(|()| 0),
        Err(errno) => call.write(1, &vec![0; size]).map(|()| errno.to_ret()),
    }
}

/// Reads a string and leaves the rest of the buffer unchanged. Returns its length with the
/// NUL; zeros and an error on failure.
fn read_str(call: &mut Call<'_>, from: From) -> Result {
    let size = call.size(2);
    call.check(1, size, AccessKind::Write)?;
    let address = call.arg(3);
    match from.copy_str(call.machine, address, size) {
        Ok(bytes) => call.write(1, &bytes).map(|()| bytes.len() as u64),
        Err(errno) => call.write(1, &vec![0; size]).map(|()| errno.to_ret()),
    }
}

pub(super) fn probe_read(call: &mut Call<'_>) -> Result {
    let from = From::address(call.arg(3));
    read(call, from)
}

pub(super) fn probe_read_str(call: &mut Call<'_>) -> Result {
    let from = From::address(call.arg(3));
    read_str(call, from)
}

pub(super) fn probe_read_kernel(call: &mut Call<'_>) -> Result {
    read(call, From::Kernel)
}

pub(super) fn probe_read_kernel_str(call: &mut Call<'_>) -> Result {
    read_str(call, From::Kernel)
}

pub(super) fn probe_read_user(call: &mut Call<'_>) -> Result {
    read(call, From::User)
}

pub(super) fn probe_read_user_str(call: &mut Call<'_>) -> Result {
    read_str(call, From::User)
}

/// `bpf_copy_from_user_task(dst, size, address, task, flags)`: reads the current task's
/// memory; other tasks have none.
pub(in crate::vm) fn copy_from_user_task(call: &mut Call<'_>) -> Result {
    if call.arg(5) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let world = &call.machine.world;
    if call.machine.world.task_address()? == call.arg(4) {
        return copy_from_user(call);
    }
    if world.kernel_memory().object_at(call.arg(4)).is_none() {
        return Err(call.wrong(4, "a task"));
    }
    // Only the current task's memory is mocked.
    let size = call.size(2);
    call.write(1, &vec![0; size])?;
    Ok(Errno::EFAULT.to_ret())
}

pub(in crate::vm) fn copy_from_user(call: &mut Call<'_>) -> Result {
    read(call, From::User)
}

/// `bpf_probe_write_user(dst, src, size)`: writes to the mocked task's memory.
pub(super) fn probe_write_user(call: &mut Call<'_>) -> Result {
    let bytes = call.read(2, call.size(3))?;
    let at = call.arg(1);
    let written = call.machine.world.user().write(at, &bytes);
    Ok(if written { 0 } else { Errno::EFAULT.to_ret() })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;
    use crate::util::HelperId;
    use crate::vm::memory::{Region, Rights, SharedBytes};

    const EFAULT: u64 = Errno::EFAULT.to_ret();
    const ERANGE: u64 = Errno::ERANGE.to_ret();

    fn bench() -> (Bench, u64) {
        let mut bench = Bench::new();
        let buffer = bench.memory(&[0xee; 8]);
        (bench, buffer)
    }

    #[test]
    fn kernel_memory_is_read_whatever_its_rights() {
        let (mut bench, to) = bench();
        let bytes = std::sync::Arc::new(SharedBytes::from_bytes(&[1, 2, 3, 4, 5, 6, 7, 8]));
        let region = Region::bytes("context", bytes)
            .with_hidden(8)
            .with_rights(Rights::Write);
        let context = bench.machine.space.insert(region).unwrap();
        for helper in [id::probe_read_kernel, id::probe_read] {
            assert_eq!(bench.call(helper, [to, 4, context.plus(2)]), Ok(0));
            assert_eq!(bench.bytes(to, 8), [3, 4, 5, 6, 0xee, 0xee, 0xee, 0xee]);
        }
        assert_eq!(
            bench.call(id::probe_read_kernel, [to, 8, context.plus(2)]),
            Ok(EFAULT)
        );
        assert_eq!(bench.bytes(to, 8), [0; 8]);
    }

    #[test]
    fn user_memory_is_read_by_its_own_helpers_and_the_old_one() {
        let (mut bench, to) = bench();
        let user = bench.machine.world.user().add(&[1, 2, 3, 4]);
        for helper in [id::probe_read_user, id::probe_read, id::copy_from_user] {
            assert_eq!(bench.call(helper, [to, 4, user]), Ok(0));
            assert_eq!(bench.bytes(to, 5), [1, 2, 3, 4, 0xee]);
            assert_eq!(bench.call(helper, [to, 5, user]), Ok(EFAULT));
            assert_eq!(bench.bytes(to, 6), [0, 0, 0, 0, 0, 0xee]);
            bench.machine.space.write(to, &[0xee; 8]).unwrap();
        }
        assert_eq!(bench.call(id::probe_read_user, [to, 4, to]), Ok(EFAULT));
    }

    #[test]
    fn user_addresses_are_out_of_range_for_kernel_reads() {
        let (mut bench, to) = bench();
        let user = bench.machine.world.user().add(&[1, 2, 3, 4]);
        let cases = [
            (0, ERANGE),
            (user, ERANGE),
            (1 << 62, ERANGE),
            (u64::MAX, EFAULT),
        ];
        for (at, expected) in cases {
            for helper in [id::probe_read_kernel, id::probe_read_kernel_str] {
                bench.machine.space.write(to, &[0xee; 8]).unwrap();
                assert_eq!(bench.call(helper, [to, 4, at]), Ok(expected), "{at:#x}");
                assert_eq!(bench.bytes(to, 5), [0, 0, 0, 0, 0xee]);
            }
        }
    }

    fn strings(helper: HelperId, bench: &mut Bench, to: u64, text: u64) {
        assert_eq!(bench.call(helper, [to, 8, text]), Ok(4));
        assert_eq!(bench.bytes(to, 8), b"abc\0\xee\xee\xee\xee");
        assert_eq!(bench.call(helper, [to, 3, text]), Ok(3));
        assert_eq!(bench.bytes(to, 4), b"ab\0\0");
        assert_eq!(bench.call(helper, [to, 8, text + 3]), Ok(1));
        assert_eq!(bench.call(helper, [to, 1, text]), Ok(1));
        assert_eq!(bench.bytes(to, 2), b"\0b");
        assert_eq!(bench.call(helper, [to, 0, text]), Ok(0));
        // The read part ends without a NUL.
        assert_eq!(bench.call(helper, [to, 3, text + 4]), Ok(3));
        assert_eq!(bench.bytes(to, 3), b"de\0");
        assert_eq!(bench.call(helper, [to, 8, text + 4]), Ok(EFAULT));
        assert_eq!(bench.bytes(to, 8), [0; 8]);
        bench.machine.space.write(to, &[0xee; 8]).unwrap();
    }

    #[test]
    fn strings_end_in_nul_and_leave_the_rest_alone() {
        let (mut bench, to) = bench();
        let kernel = bench.memory(b"abc\0def");
        let user = bench.machine.world.user().add(b"abc\0def");
        for helper in [id::probe_read_kernel_str, id::probe_read_str] {
            strings(helper, &mut bench, to, kernel);
        }
        for helper in [id::probe_read_user_str, id::probe_read_str] {
            strings(helper, &mut bench, to, user);
        }
    }

    #[test]
    fn nothing_is_read_where_there_is_no_room() {
        let (mut bench, to) = bench();
        let user = bench.machine.world.user().add(&[1; 16]);
        assert!(bench.call(id::probe_read_user, [to, 9, user]).is_err());
        let huge = u64::from(u32::MAX);
        assert!(
            bench
                .call(id::probe_read_user_str, [to, huge, user])
                .is_err()
        );
        assert_eq!(bench.bytes(to, 8), [0xee; 8]);
        // Size 0 reads nothing, at any readable address.
        for helper in [id::probe_read_user, id::probe_read, id::probe_read_user_str] {
            assert_eq!(bench.call(helper, [0, 0, 0]), Ok(0));
        }
        assert_eq!(bench.call(id::probe_read_kernel_str, [0, 0, 0]), Ok(0));
        assert_eq!(bench.call(id::probe_read_kernel, [0, 0, 0]), Ok(ERANGE));
        assert_eq!(bench.call(id::probe_read_kernel, [0, 0, u64::MAX]), Ok(0));
    }

    #[test]
    fn user_memory_is_written_whole_or_not_at_all() {
        let (mut bench, from) = bench();
        let user = bench.machine.world.user().add(&[1; 4]);
        assert_eq!(bench.call(id::probe_write_user, [user, from, 4]), Ok(0));
        assert_eq!(
            bench.machine.world.user().read(user, 4),
            Some(vec![0xee; 4])
        );
        assert_eq!(
            bench.call(id::probe_write_user, [user + 1, from, 4]),
            Ok(EFAULT)
        );
        assert!(bench.call(id::probe_write_user, [user, from, 9]).is_err());
    }

    #[test]
    fn a_tasks_memory_is_the_current_ones() {
        let mut bench = Bench::new();
        let user = bench.machine.world.user().add(&[7; 4]);
        let task = bench.ok(id::get_current_task, []);
        let dst = bench.memory(&[0; 8]);
        let helper = id::copy_from_user_task;
        assert_eq!(bench.ok(helper, [dst, 4, user, task, 0]), 0);
        assert_eq!(bench.bytes(dst, 5), [7, 7, 7, 7, 0]);
        assert_eq!(bench.ok(helper, [dst, 0, 0, task, 0]), 0);
        assert_eq!(bench.errno(helper, [dst, 8, user, task, 0]), Errno::EFAULT);
        assert_eq!(bench.errno(helper, [dst, 4, user, task, 1]), Errno::EINVAL);
        assert!(bench.call(helper, [dst, 4, user, 0, 0]).is_err());
    }
}
