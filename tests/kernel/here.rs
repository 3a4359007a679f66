//! Whether there is a kernel to ask, and the shared collection of cases.

use std::path::PathBuf;

use bpflab::kernel::Availability;

/// What the running kernel offers; says why a test is skipped where that is nothing.
pub fn kernel() -> Option<Availability> {
    // The kernel may be there and /sys not, as in a bare container: then neither its
    // types nor the number of its CPUs can be had.
    for file in [
        "/sys/kernel/btf/vmlinux",
        "/sys/devices/system/cpu/possible",
    ] {
        if !std::path::Path::new(file).exists() {
            eprintln!("skipped: {file} is not there");
            return None;
        }
    }
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
