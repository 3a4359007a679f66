//! Whether there is a kernel to ask.

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
