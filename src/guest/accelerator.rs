//! How a guest's instructions are executed.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;

use super::kernels::{Arch, cache_folder};

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The processor.
    Kvm,
    /// qemu's translator, with one thread: with several a guest was seen to crash while probes
    /// were attached and removed.
    Tcg,
}

impl Accelerator {
    /// KVM for a guest of this machine's kind if this user may use it, and no guest of this host
    /// has failed under it since the host was started.
    pub fn best(guest: Arch) -> Self {
        let usable = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/kvm")
                .is_ok()
        };
        if guest.is_native() && !has_failed() && usable() {
            Self::Kvm
        } else {
            Self::Tcg
        }
    }

    /// The value of qemu's option `-accel`.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg,thread=single",
        }
    }

    /// The time in which a guest has to reach its first process. An emulated one on a busy host
    /// was seen to need 40 s; the processor needs less than a second.
    pub const fn boot_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Kvm => 10,
            Self::Tcg => 120,
        })
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        })
    }
}

/// Remembers that KVM is there but runs no guests, as on some virtual hosts, until the host is
/// started again.
pub(super) fn kvm_fails() {
    // What is not remembered is tried again.
    let _ = fs::create_dir_all(cache_folder());
    let _ = fs::write(marker(), host());
}

fn has_failed() -> bool {
    fs::read_to_string(marker()).is_ok_and(|host_then| host_then == host())
}

fn marker() -> PathBuf {
    cache_folder().join("kvm-fails")
}

/// This start of the host.
fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
