//! This machine's kernel release and clocks.

use std::fs;

use super::{cpus, sys};

/// A kernel, as `uname` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uname {
    /// `uname -r`: `6.18.44`.
    pub release: String,
    /// `uname -v`: when and how it was built.
    pub version: String,
    /// `uname -m`: `x86_64`.
    pub machine: String,
}

impl Uname {
    /// The running kernel. Unknown fields are empty.
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

    /// Whether it is older than a release (`(5, 15)`); false if the release has no numbers.
    #[must_use]
    pub fn is_before(&self, release: (u32, u32)) -> bool {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|digits| digits.parse().ok());
        match (number(), number()) {
            (Some(major), Some(minor)) => (major, minor) < release,
            _ => false,
        }
    }
}

/// One moment on three of the kernel's clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Since 1970.
    pub realtime: u64,
    /// Without suspend, as `bpf_ktime_get_ns` returns.
    pub monotonic: u64,
    /// Since boot, as `bpf_ktime_get_boot_ns` returns.
    pub boottime: u64,
}

impl Clocks {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        Self {
            realtime: sys::realtime(),
            monotonic: sys::monotonic(),
            boottime: sys::boottime(),
        }
    }
}

/// The number of values that user space reads and writes for an entry of a per-CPU map; 0 if
/// unknown.
#[must_use]
pub fn possible_cpus() -> u32 {
    cpus::possible()
}

/// The variable that has the name of a virtual machine's kernel, as `--vm` was given it.
pub(crate) const VM: &str = "BPFLAB_VM";

/// The name of the running kernel, if it is that of a virtual machine of `--vm`.
pub(crate) fn vm_image() -> Option<String> {
    std::env::var(VM).ok()
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
        assert!(!uname.is_before((2, 6)) && uname.is_before((u32::MAX, 0)));
        let of = |release: &str| Uname {
            release: release.to_owned(),
            ..uname.clone()
        };
        assert!(of("5.4.0-150-generic").is_before((5, 15)));
        assert!(!of("5.15.1").is_before((5, 15)) && !of("6.1").is_before((5, 15)));
        assert!(!of("").is_before((5, 15)) && !of("five.4").is_before((5, 15)));
        let (one, two) = (Clocks::now(), Clocks::now());
        assert!(one.monotonic <= two.monotonic && one.boottime >= one.monotonic);
        assert!(one.realtime > one.boottime);
    }
}
