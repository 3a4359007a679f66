//! Reads the machine's clocks, and lifts a limit of this process.

/// The time on a clock in nanoseconds; 0 if the kernel lacks the clock.
fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is written, and borrowed mutably.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return 0;
    }
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Nanoseconds since 1970.
pub fn realtime() -> u64 {
    now(libc::CLOCK_REALTIME)
}

/// Nanoseconds without suspend, as `bpf_ktime_get_ns` returns.
pub fn monotonic() -> u64 {
    now(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since boot.
pub fn boottime() -> u64 {
    now(libc::CLOCK_BOOTTIME)
}

/// Lets this process and its children lock any amount of memory, if it may.
pub fn unlimit_locked_memory() {
    let limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `limit` is read only. Without the permission nothing changes: the call that needs
    // the memory then says so.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}
