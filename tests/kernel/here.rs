//! Whether there is a kernel to ask.

use crate::shared::{Need, skip};
use std::path::Path;
use std::sync::OnceLock;

use bpflab::kernel::Availability;

/// What the running kernel offers; skips the test where that is nothing.
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

/// The kernel, asked once in the life of a test binary.
fn probe() -> Result<Availability, String> {
    // The kernel may be there and /sys not, as in a bare container: then neither its
    // types nor the number of its CPUs can be had.
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

/// The release whose rules, tables and lines of errors bpflab's are.
const RELEASE: &str = "6.18.";

/// The running kernel if it is of that release: the judge of what bpflab takes from it.
/// Skips the test otherwise.
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
