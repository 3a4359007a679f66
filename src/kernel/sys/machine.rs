//! What the machine says of itself.

/// The time on a clock in nanoseconds; 0 on kernels that don't have it.
fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the address is that of the value that is written.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return 0;
    }
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// The time since 1970.
pub fn realtime() -> u64 {
    now(libc::CLOCK_REALTIME)
}

/// The time that the machine was awake, which `bpf_ktime_get_ns` tells.
pub fn monotonic() -> u64 {
    now(libc::CLOCK_MONOTONIC)
}

/// The time since it was started.
pub fn boottime() -> u64 {
    now(libc::CLOCK_BOOTTIME)
}
