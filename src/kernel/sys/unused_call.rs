//! A system call that does nothing, to fire the tracepoints of system calls.

/// A system call that no kernel has: it comes back with `ENOSYS` and does nothing, and
/// `raw_syscalls:sys_enter` and `sys_exit` see its number and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedCall(u32);

impl UnusedCall {
    /// The first number, far above what any kernel has (some 470 in 2025), and the first
    /// that is too large: on x86-64 bit 30 makes it a call of the x32 ABI.
    const NUMBERS: std::ops::Range<u32> = 0x1000..0x2000_0000;

    /// The call of this number, brought to one that no kernel has.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        let room = Self::NUMBERS.end - Self::NUMBERS.start;
        Self(Self::NUMBERS.start + number % room)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Makes the call. What the arguments say doesn't matter to the kernel; programs may
    /// take them for addresses.
    pub fn make(self, arguments: [u64; 6]) {
        let [a, b, c, d, e, f] = arguments.map(u64::cast_signed);
        // SAFETY: no kernel has a call of such a number, so it fails before it looks at
        // its arguments, and touches no memory.
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
        // A sandbox may have another word for it.
        assert!([Some(libc::ENOSYS), Some(libc::EPERM)].contains(&error.raw_os_error()));
    }
}
