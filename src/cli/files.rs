//! Reading files that a user names.

use std::path::Path;

use super::exit::Failure;

/// Reads a text file.
pub(super) fn read_text(path: impl AsRef<Path>) -> Result<String, Failure> {
    let path = path.as_ref();
    std::fs::read_to_string(path)
        .map_err(|error| Failure::bad(format!("{}: can't be read: {error}", path.display())))
}
