//! Which machine and which kernel this is, and what time it is there.

use std::fs;

use super::{cpus, sys};

/// A kernel, as `uname` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// `uname -r`: `6.18.44`.
    pub release: String,
    /// `uname -v`: when and how it was built.
    pub version: String,
    /// `uname -m`: `x86_64`.
    pub machine: String,
}

impl Uname {
    /// The running one. What it does not tell is empty.
    #[must_use]
    pub fn here() -> Self {
        let line = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            text.unwrap_or_default().trim_end().to_owned()
        };
        Self {
            release: line("osrelease"),
            version: line("version"),
            machine: std::env::consts::ARCH.to_owned(),
        }
    }
}

/// A moment on three of the kernel's clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Since 1970.
    pub realtime: u64,
    /// While the machine was awake: what `bpf_ktime_get_ns` tells.
    pub monotonic: u64,
    /// Since it was started: what `bpf_ktime_get_boot_ns` tells.
    pub boottime: u64,
}

impl Clocks {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            realtime: sys::realtime(),
            monotonic: sys::monotonic(),
            boottime: sys::boottime(),
        }
    }
}

/// How many values user space reads and writes of an entry of a per-CPU map; 0 where the
/// kernel does not say.
#[must_use]
pub fn possible_cpus() -> u32 {
    cpus::possible()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let uname = Uname::here();
        assert!(
            uname.release.contains('.') && !uname.machine.is_empty(),
            "{uname:?}"
        );
        let (one, two) = (Clocks::now(), Clocks::now());
        assert!(one.monotonic <= two.monotonic && one.boottime >= one.monotonic);
        assert!(one.realtime > one.boottime);
    }
}
