//! The BTF of the kernel's modules, a file each beside the kernel's own.

use std::fs;
use std::path::Path;

use crate::btf::Btf;

/// The folder with the BTF of the kernel and its modules.
pub(super) const FOLDER: &str = "/sys/kernel/btf";
/// The kernel's own file in it.
pub(super) const KERNEL: &str = "vmlinux";

/// The BTF of each module on the kernel's, with the module's name; none if there is no folder.
pub(super) fn modules(folder: &Path, kernel: &Btf) -> impl Iterator<Item = (String, Btf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // A module may have been unloaded, or be built for another kernel.
        let bytes = fs::read(entry.path()).ok().filter(|_| name != KERNEL)?;
        Some((name, Btf::parse_split(&bytes, kernel).ok()?))
    })
}
