//! The running kernel, for tests that need one.

use crate::shared::{Need, skip};
use std::path::Path;
use std::sync::OnceLock;

use bpflab::kernel::Availability;

/// What the running kernel supports; skips the test if programs can't be loaded.
#[track_caller]
pub fn kernel() -> Option<Availability> {
    static KERNEL: OnceLock<Result<Availability, String>> = OnceLock::new();
    match KERNEL.get_or_init(probe) {
        Ok(kernel) => Some(kernel.clone()),
        Err(why) => {
            skip(Need::Kernel, why);
            None
        }
    }
}

/// The kernel, probed once per test binary.
fn probe() -> Result<Availability, String> {
    // In a bare container the kernel works but /sys is empty: then its BTF and the number of
    // its CPUs are unknown.
    for file in [
        "/sys/kernel/btf/vmlinux",
        "/sys/devices/system/cpu/possible",
    ] {
        if !Path::new(file).exists() {
            return Err(format!("{file} is not there"));
        }
    }
    let kernel = Availability::probe();
    match kernel.usable() {
        true => Ok(kernel),
        false => Err(kernel.missing().join("; ")),
    }
}

/// The release whose rules, tables and error lines bpflab reproduces.
const RELEASE: &str = "6.18.";

/// The running kernel if it is of that release, to compare bpflab with. Skips the test
/// otherwise.
#[allow(dead_code, reason = "not every test with this file needs it")]
#[track_caller]
pub fn judge() -> Option<Availability> {
    let kernel = kernel()?;
    if kernel.release.starts_with(RELEASE) {
        return Some(kernel);
    }
    let here = &kernel.release;
    skip(
        Need::Release,
        format_args!("the judge is Linux {RELEASE}x, this is {here}"),
    );
    None
}
