//! Reads kernels from files: images, and packages of distributions.
//!
//! A package is not trusted: what it unpacks to is bounded, and paths in it only select
//! files; nothing is written where they say.

mod collect;
mod deb;
mod error;
mod folder;
mod module;
mod pvh;
mod rpm;
#[cfg(test)]
mod tests;
mod vmlinuz;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub(crate) use collect::Found;
pub(crate) use error::{Error, GET, Problem};
pub(crate) use module::{Module, Modules, with_needs};
pub(super) use pvh::unpacked;
pub(crate) use vmlinuz::{Arch, is_release};

use collect::Collector;

/// How often a package is read to find the modules that others need. A package lists them in
/// any order, so each reading may find some whose own needs came before.
const MAX_READINGS: u32 = 8;

/// Reads an image or a package, with these modules and those that they need. The modules of a
/// bare image are the installed ones of its release, if there are any.
///
/// # Errors
/// The file can't be read, or contains neither an image nor one of the modules.
pub(crate) fn read(file: &Path, wanted: &[&str]) -> Result<Found, Error> {
    let mut collector = Collector::new(wanted);
    let mut missing = collector.missing();
    for _ in 0..MAX_READINGS {
        once(file, &mut collector).map_err(|problem| Error::of(file, problem))?;
        let still = collector.missing();
        // What was wanted from the start of this reading is not in the package.
        if still.is_subset(&missing) {
            break;
        }
        missing = still;
    }
    collector
        .finish()
        .map_err(|problem| Error::of(file, problem))
}

/// The name of a file without its folder, in one line.
pub(crate) fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.replace(char::is_control, "?")
}

/// Shows the contents of a file to the collector.
fn once(path: &Path, collector: &mut Collector) -> Result<(), Problem> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let head = file.fill_buf()?;
    if head.starts_with(deb::MAGIC) {
        deb::read(file, length, collector)
    } else if head.starts_with(rpm::MAGIC) {
        rpm::read(file, collector)
    } else if let Some(release) = collector.image(&mut file)? {
        folder::read(Path::new("/"), &release, collector)
    } else {
        Ok(())
    }
}
