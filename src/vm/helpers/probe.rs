//! Helpers that read memory which need not be there: the kernel's and the current
//! task's (`kernel/trace/bpf_trace.c`, `mm/maccess.c`).
//!
//! Whatever goes wrong, the whole destination is zero afterwards and the program is
//! told so. A destination that is not the program's is a fault of the program.

use crate::util::Errno;
use crate::vm::machine::{Call, Machine, Returned};

/// The first address that user space can't have (`TASK_SIZE_MAX` on x86-64).
const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// Memory with rules of its own.
#[derive(Clone, Copy)]
enum Source {
    User,
    Kernel,
}

impl Source {
    /// How `bpf_probe_read` takes an address (`bpf_probe_read_compat`).
    const fn of(address: u64) -> Self {
        if address < TASK_SIZE {
            Self::User
        } else {
            Self::Kernel
        }
    }

    /// Bytes from an address on, at most `len` and as far as memory reaches.
    ///
    /// Reads of the kernel refuse addresses that are not its own with `ERANGE`
    /// (`copy_from_kernel_nofault_allowed`), reads of user space with `EFAULT`
    /// (`access_ok`).
    fn bytes(self, machine: &mut Machine, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        match self {
            Self::Kernel if address.cast_signed() >= 0 => Err(Errno::ERANGE),
            Self::Kernel => Ok(machine.space.peek(address, len)),
            Self::User if address > TASK_SIZE => Err(Errno::EFAULT),
            Self::User => Ok(user_bytes(machine, address, len)),
        }
    }

    /// Copies all of `len` bytes (`copy_from_kernel_nofault`,
    /// `copy_from_user_nofault`).
    fn read(self, machine: &mut Machine, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let bytes = self.bytes(machine, address, len)?;
        if bytes.len() < len {
            return Err(Errno::EFAULT);
        }
        Ok(bytes)
    }

    /// Copies a string with its NUL; one that is longer is cut to `len - 1` bytes
    /// and a NUL (`strncpy_from_kernel_nofault`, `strncpy_from_user_nofault`).
    fn read_str(self, machine: &mut Machine, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = self.bytes(machine, address, len)?;
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => bytes.truncate(end + 1),
            None if bytes.len() < len => return Err(Errno::EFAULT),
            None => {}
        }
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        Ok(bytes)
    }
}

/// Mapped bytes of the task from an address on, at most `len`.
fn user_bytes(machine: &mut Machine, address: u64, len: usize) -> Vec<u8> {
    let user = machine.world.user();
    let mut bytes = Vec::new();
    while let left @ 1.. = len - bytes.len()
        && let Some(run) = user.run(address.wrapping_add(bytes.len() as u64))
    {
        bytes.extend(run.iter().take(left));
    }
    bytes
}

/// Reads a string as `%s` does, from where its address says
/// (`bpf_trace_copy_string`); with its NUL, at most `len` bytes.
pub(super) fn any_str(machine: &mut Machine, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
    Source::of(address).read_str(machine, address, len)
}

/// Reads a kernel string as `%pks` does.
pub(super) fn kernel_str(
    machine: &mut Machine,
    address: u64,
    len: usize,
) -> Result<Vec<u8>, Errno> {
    Source::Kernel.read_str(machine, address, len)
}

/// Reads a user string as `%pus` does.
pub(super) fn user_str(machine: &mut Machine, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
    Source::User.read_str(machine, address, len)
}

/// Reads kernel memory as `%pI4` does.
pub(super) fn kernel_bytes(
    machine: &mut Machine,
    address: u64,
    len: usize,
) -> Result<Vec<u8>, Errno> {
    Source::Kernel.read(machine, address, len)
}

/// `(dst, size, address)`: 0, or the error and zeros.
fn copy(call: &mut Call<'_>, source: Source) -> Returned {
    let (size, address) = (call.arg_size(2), call.arg(3));
    call.check_writable(1, size)?;
    let read = source.read(call.machine, address, size);
    let (bytes, returned) = match read {
        Ok(bytes) => (bytes, 0),
        Err(error) => (vec![0; size], error.to_ret()),
    };
    call.write(1, &bytes)?;
    Ok(returned)
}

/// `(dst, size, address)`: the string's length with its NUL, or the error and zeros.
/// What lies behind the string in the destination stays as it was.
fn copy_str(call: &mut Call<'_>, source: Source) -> Returned {
    let (size, address) = (call.arg_size(2), call.arg(3));
    call.check_writable(1, size)?;
    let read = source.read_str(call.machine, address, size);
    let (bytes, returned) = match read {
        Ok(bytes) => {
            let len = bytes.len() as u64;
            (bytes, len)
        }
        Err(error) => (vec![0; size], error.to_ret()),
    };
    call.write(1, &bytes)?;
    Ok(returned)
}

pub(super) fn probe_read(call: &mut Call<'_>) -> Returned {
    copy(call, Source::of(call.arg(3)))
}

pub(super) fn probe_read_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, Source::of(call.arg(3)))
}

pub(super) fn probe_read_user(call: &mut Call<'_>) -> Returned {
    copy(call, Source::User)
}

pub(super) fn probe_read_user_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, Source::User)
}

pub(super) fn probe_read_kernel(call: &mut Call<'_>) -> Returned {
    copy(call, Source::Kernel)
}

pub(super) fn probe_read_kernel_str(call: &mut Call<'_>) -> Returned {
    copy_str(call, Source::Kernel)
}

/// May sleep to bring memory in, which changes nothing here: all that is mapped is
/// present. Nothing to copy succeeds from anywhere.
pub(super) fn copy_from_user(call: &mut Call<'_>) -> Returned {
    match call.arg_size(2) {
        0 => Ok(0),
        _ => copy(call, Source::User),
    }
}

/// `(dst, size, address, task, flags)`: the one task there is.
pub(super) fn copy_from_user_task(call: &mut Call<'_>) -> Returned {
    if call.arg(5) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let current = call.machine.task_address();
    if current.ok() != Some(call.arg(4)) {
        return Err(call.wrong(4, "the current task"));
    }
    copy_from_user(call)
}

/// `(address, src, size)`: overwrites the task's memory, all of it or nothing.
pub(super) fn probe_write_user(call: &mut Call<'_>) -> Returned {
    let bytes = call.read(2, call.arg_size(3))?;
    let address = call.arg(1);
    Ok(match call.machine.world.user().write(address, &bytes) {
        true => 0,
        false => Errno::EFAULT.to_ret(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    const NOWHERE: u64 = 0xffff_8880_0000_0000;

    #[test]
    fn what_is_mapped_is_copied() {
        let mut bench = Bench::new();
        let kernel = bench.bytes(b"kernel");
        let user = bench.machine.world.user().add(b"userland");
        let dst = bench.bytes(&[0xff; 8]);
        for (helper, from, want) in [
            (id::probe_read_kernel, kernel, b"kernel"),
            (id::probe_read, kernel, b"kernel"),
            (id::probe_read_user, user, b"userla"),
            (id::probe_read, user, b"userla"),
            (id::copy_from_user, user, b"userla"),
        ] {
            assert_eq!(bench.ok(helper, [dst, 6, from]), 0, "{helper}");
            assert_eq!(bench.read(dst, 6), want, "{helper}");
        }
        assert_eq!(bench.read(dst, 8)[6..], [0xff; 2]);
    }

    #[test]
    fn failures_say_which_and_leave_zeros() {
        let mut bench = Bench::new();
        let kernel = bench.bytes(&[1; 4]);
        let user = bench.machine.world.user().add(&[1; 4]);
        let dst = bench.bytes(&[0; 8]);
        for (helper, from, want) in [
            (id::probe_read_kernel, kernel, Errno::EFAULT), // 4 of 8 bytes
            (id::probe_read_kernel, NOWHERE, Errno::EFAULT),
            (id::probe_read_kernel, 0, Errno::ERANGE),
            (id::probe_read_kernel, user, Errno::ERANGE),
            (id::probe_read_kernel_str, user, Errno::ERANGE),
            (id::probe_read_kernel_str, kernel, Errno::EFAULT), // no NUL
            (id::probe_read_user, user, Errno::EFAULT),
            (id::probe_read_user, kernel, Errno::EFAULT),
            (id::probe_read_user, 0, Errno::EFAULT),
            (id::probe_read_user_str, user, Errno::EFAULT),
            (id::probe_read_user_str, NOWHERE, Errno::EFAULT),
            (id::probe_read, 8, Errno::EFAULT),
            (id::probe_read, NOWHERE, Errno::EFAULT),
            (id::probe_read_str, TASK_SIZE, Errno::ERANGE),
            (id::copy_from_user, user, Errno::EFAULT),
        ] {
            bench.machine.space.write(dst, &[0xff; 8]).unwrap();
            assert_eq!(
                bench.errno(helper, [dst, 8, from]),
                want,
                "{helper} {from:#x}"
            );
            assert_eq!(bench.read(dst, 8), [0; 8], "{helper} {from:#x}");
        }
    }

    #[test]
    fn strings_count_their_nul() {
        let mut bench = Bench::new();
        let kernel = bench.cstr("hello");
        let user = bench.machine.world.user_cstr("hello");
        let dst = bench.bytes(&[0; 8]);
        for (helper, from) in [
            (id::probe_read_kernel_str, kernel),
            (id::probe_read_str, kernel),
            (id::probe_read_user_str, user),
            (id::probe_read_str, user),
        ] {
            for (size, len, want) in [
                (8, 6, b"hello\0\xff\xff"),
                (6, 6, b"hello\0\xff\xff"),
                (5, 5, b"hell\0\xff\xff\xff"),
                (1, 1, b"\0\xff\xff\xff\xff\xff\xff\xff"),
                (0, 0, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
            ] {
                bench.machine.space.write(dst, &[0xff; 8]).unwrap();
                assert_eq!(bench.ok(helper, [dst, size, from]), len);
                assert_eq!(bench.read(dst, 8), want, "{helper} {size}");
            }
        }
    }

    #[test]
    fn nothing_to_read_still_checks_the_address_where_the_kernel_does() {
        let mut bench = Bench::new();
        assert_eq!(bench.ok(id::copy_from_user, [0, 0, u64::MAX]), 0);
        assert_eq!(bench.ok(id::probe_read_user, [0, 0, 0]), 0);
        assert_eq!(bench.ok(id::probe_read_kernel, [0, 0, NOWHERE]), 0);
        assert_eq!(bench.errno(id::probe_read_kernel, [0, 0, 0]), Errno::ERANGE);
        assert_eq!(
            bench.errno(id::probe_read_user, [0, 0, NOWHERE]),
            Errno::EFAULT
        );
    }

    #[test]
    fn user_memory_can_be_written() {
        let mut bench = Bench::new();
        let user = bench.machine.world.user().add(&[0; 4]);
        let from = bench.bytes(&[7; 8]);
        assert_eq!(bench.ok(id::probe_write_user, [user, from, 4]), 0);
        assert_eq!(bench.machine.world.user().read(user, 4), Some(vec![7; 4]));
        for (to, len) in [(user, 5), (0, 1), (from, 1)] {
            assert_eq!(
                bench.errno(id::probe_write_user, [to, from, len]),
                Errno::EFAULT
            );
        }
    }

    #[test]
    fn a_tasks_memory_is_the_current_ones() {
        let mut bench = Bench::new();
        let user = bench.machine.world.user().add(&[7; 4]);
        let task = bench.ok(id::get_current_task, []);
        let dst = bench.bytes(&[0; 8]);
        let helper = id::copy_from_user_task;
        assert_eq!(bench.ok(helper, [dst, 4, user, task, 0]), 0);
        assert_eq!(bench.read(dst, 5), [7, 7, 7, 7, 0]);
        assert_eq!(bench.ok(helper, [dst, 0, 0, task, 0]), 0);
        assert_eq!(bench.errno(helper, [dst, 8, user, task, 0]), Errno::EFAULT);
        assert_eq!(bench.errno(helper, [dst, 4, user, task, 1]), Errno::EINVAL);
        assert!(bench.call(helper, [dst, 4, user, 0, 0]).is_err());
    }

    #[test]
    fn user_strings_may_span_pieces() {
        let mut bench = Bench::new();
        let user = bench.machine.world.user();
        assert!(user.map(0x1000, b"ab") && user.map(0x1002, b"c\0"));
        let dst = bench.bytes(&[0; 8]);
        assert_eq!(bench.ok(id::probe_read_user_str, [dst, 8, 0x1000]), 4);
        assert_eq!(bench.read(dst, 4), b"abc\0");
    }

    #[test]
    fn the_destination_has_to_be_the_programs() {
        let mut bench = Bench::new();
        let from = bench.cstr("hello");
        let dst = bench.bytes(&[0; 4]);
        for helper in [id::probe_read_kernel, id::probe_read_kernel_str] {
            let problem = bench.call(helper, [dst, 8, from]).unwrap_err();
            assert!(
                problem
                    .to_string()
                    .starts_with("argument 1: writes 8 bytes")
            );
        }
        assert!(bench.call(id::probe_read, [dst, 0xffff_ffff, 0]).is_err());
    }
}
