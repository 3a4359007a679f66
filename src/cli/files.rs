//! Reading and writing files that a user names.

use std::path::Path;

use super::exit::Failure;

/// Reads a text file.
pub(super) fn read_text(path: impl AsRef<Path>) -> Result<String, Failure> {
    let path = path.as_ref();
    std::fs::read_to_string(path)
        .map_err(|error| Failure::bad(format!("{}: can't be read: {error}", path.display())))
}

/// Writes a text file.
pub(super) fn write_text(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text)
        .map_err(|error| Failure::bad(format!("{}: can't be written: {error}", file.display())))
}

/// Whether a file has cases: by its name.
pub(super) fn is_cases(file: &Path) -> bool {
    file.to_string_lossy().contains(".jsonl")
}
