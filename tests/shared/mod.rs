//! What all tests share: the way in which they are skipped, and a folder beside the project
//! that is not part of it.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test target uses what it needs of it"
)]

pub mod skip;

use std::path::PathBuf;

pub use skip::{Need, skip, skip_part};

/// A file of that folder; skips the test where it is not there. `BPFLAB_SHARED` says where
/// the folder is; it is beside the project otherwise.
#[track_caller]
pub fn file(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let path = shared.join(name);
    if !path.exists() {
        skip(
            Need::Corpus,
            format_args!("{} is not there", path.display()),
        );
        return None;
    }
    Some(path)
}

/// The collection of programs with a real kernel's verdicts.
#[track_caller]
pub fn corpus() -> Option<PathBuf> {
    file("corpus/selftests.jsonl.xz")
}
