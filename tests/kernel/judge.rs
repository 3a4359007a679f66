//! The running kernel as the judge of what bpflab takes from one release of Linux.

use std::sync::OnceLock;

use bpflab::kernel::Availability;

use super::here;

/// The release whose rules, tables and lines of errors bpflab's are.
const RELEASE: &str = "6.18.";

/// The running kernel if it is of that release; says why tests are skipped, once.
pub fn kernel() -> Option<&'static Availability> {
    static KERNEL: OnceLock<Option<Availability>> = OnceLock::new();
    KERNEL.get_or_init(of_the_release).as_ref()
}

fn of_the_release() -> Option<Availability> {
    let kernel = here::kernel()?;
    if kernel.release.starts_with(RELEASE) {
        return Some(kernel);
    }
    eprintln!(
        "skipped: the judge is Linux {RELEASE}x, this is {}",
        kernel.release
    );
    None
}
