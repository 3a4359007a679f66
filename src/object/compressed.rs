//! Files that may be compressed: a kernel's configuration (`/proc/config.gz`), BTF
//! and cases in archives.

use std::io;
use std::path::Path;

/// Reads a whole file.
///
/// # Errors
/// What the system says.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}
