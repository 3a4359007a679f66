//! What tests share beside the project: a folder that is not part of it.

use std::path::PathBuf;

/// A file of that folder, or why it is not there. `BPFLAB_SHARED` says where the folder
/// is; it is beside the project otherwise.
pub fn file(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let path = shared.join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// The collection of programs with a real kernel's verdicts.
#[allow(dead_code, reason = "some tests want another file")]
pub fn corpus() -> Option<PathBuf> {
    file("corpus/selftests.jsonl.xz")
}
