//! Whether there is a kernel to ask, and the shared collection of cases.

use std::path::PathBuf;

use bpflab::kernel::Availability;

/// What the running kernel offers; says why a test is skipped where that is nothing.
pub fn kernel() -> Option<Availability> {
    let kernel = Availability::probe();
    if kernel.usable() {
        return Some(kernel);
    }
    eprintln!("skipped: {}", kernel.missing().join("; "));
    None
}

/// The collection, or why it is not there.
#[allow(dead_code, reason = "not every test reads it")]
pub fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let path = shared.join("corpus/selftests.jsonl.xz");
    if !path.is_file() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}
