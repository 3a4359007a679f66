//! An unused system call, to fire the tracepoints of system calls.

/// A system call that no kernel has: it does nothing and fails with `ENOSYS`, but
/// `raw_syscalls:sys_enter` and `sys_exit` see its number and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedCall(u32);

impl UnusedCall {
    /// The first number is far above the kernel's (some 470 in 2025); the end is the first that
    /// is too large: on x86-64 bit 30 makes it a call of the x32 ABI.
    const NUMBERS: std::ops::Range<u32> = 0x1000..0x2000_0000;

    /// The call for this number, mapped into the unused range.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        let room = Self::NUMBERS.end - Self::NUMBERS.start;
        Self(Self::NUMBERS.start + number % room)
    }

    /// The call's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Makes the call. The kernel ignores the arguments; programs may take them for addresses.
    pub fn make(self, arguments: [u64; 6]) {
        let [a, b, c, d, e, f] = arguments.map(u64::cast_signed);
        // SAFETY: no kernel has a call of this number, so it fails before it reads its
        // arguments, and touches no memory.
        unsafe { libc::syscall(i64::from(self.0), a, b, c, d, e, f) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_such_call() {
        assert_eq!(UnusedCall::new(7).number(), 0x1007);
        let most = UnusedCall::new(u32::MAX);
        assert!(UnusedCall::NUMBERS.contains(&most.number()));
        most.make([u64::MAX; 6]);
        let error = std::io::Error::last_os_error();
        // A sandbox may answer with another errno.
        assert!([Some(libc::ENOSYS), Some(libc::EPERM)].contains(&error.raw_os_error()));
    }
}
