//! The modules of an installed kernel, `/lib/modules/RELEASE`.

use std::fs::{self, File};
use std::path::Path;

use super::collect::Collector;
use super::error::Problem;

/// How deep folders are followed: those of a distribution have up to nine levels.
const MAX_DEPTH: u32 = 16;

/// Shows the files of a release below `root`; what can't be read is not there.
pub(super) fn read(root: &Path, release: &str, collector: &mut Collector) -> Result<(), Problem> {
    let folder = root.join("lib/modules").join(release);
    below(&folder, root, MAX_DEPTH, collector)
}

fn below(folder: &Path, root: &Path, depth: u32, collector: &mut Collector) -> Result<(), Problem> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        // A symbolic link, such as `build`, is neither.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            below(&path, root, depth - 1, collector)?;
        } else if kind.is_file()
            && let Ok(mut file) = File::open(&path)
        {
            let path = path.strip_prefix(root).unwrap_or(&path);
            collector.file(&path.to_string_lossy(), &mut file)?;
        }
    }
    Ok(())
}
