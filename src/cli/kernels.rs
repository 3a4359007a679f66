//! `bpflab kernels`: keeps the cache of kernels that guests boot.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use super::printer::Printer;
use crate::guest::kernels::{self, Cached, Error, GET};
use crate::report::{KernelImageRow, KernelImages};

/// Keep kernels for virtual machines
///
/// The cache is a folder: $BPFLAB_KERNELS, else $XDG_CACHE_HOME/bpflab/kernels, else
/// ~/.cache/bpflab/kernels. It has the image of each kernel, and the modules that a virtual
/// machine needs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernels list
  bpflab kernels add linux-image-6.12.117+deb12-cloud-amd64-unsigned_*.deb
  bpflab kernels add linux-image-unsigned-*.deb linux-modules-*.deb
  bpflab kernels add kernel-core-*.rpm kernel-modules-core-*.rpm
  bpflab kernels add /boot/vmlinuz-$(uname -r)
  bpflab kernels remove 6.12")]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the kernels of the cache, oldest first
    List,
    /// Add kernels, or modules of kernels
    ///
    /// Files of the same release become one kernel, and are joined with what the cache has of
    /// it. The modules of a bare image are those in /lib/modules/RELEASE, if there are any.
    Add {
        /// Packages (.deb, .rpm) and images (vmlinuz)
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Remove a kernel
    Remove {
        /// Release, or how it begins if that is one kernel's only; x86_64/ or arm64/ may be
        /// before it
        #[arg(value_name = "VERSION")]
        version: String,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::bad(error)
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let cache = kernels::cache_folder();
    let (kernels, what) = match &arguments.verb {
        Verb::List => (kernels::list(&cache)?, "kernels in"),
        Verb::Add { files } => (kernels::add(&cache, files)?, "added to"),
        Verb::Remove { version } => (vec![kernels::remove(&cache, version)?], "removed from"),
    };
    let rows: Vec<_> = kernels.iter().map(|kernel| row(kernel, &cache)).collect();
    if printer.is_json() {
        rows.iter().try_for_each(|row| printer.row(row))?;
    } else if rows.is_empty() {
        printer.text(format!("no kernels in {}\n{GET}\n", cache.display()))?;
    } else {
        let heading = format!("{what} {}", cache.display());
        printer.text(KernelImages { heading, rows })?;
    }
    Ok(Exit::Fine)
}

fn row(kernel: &Cached, cache: &Path) -> KernelImageRow {
    KernelImageRow {
        release: kernel.release.clone(),
        arch: kernel.arch.name(),
        bytes: kernel.bytes,
        modules: kernel.modules.clone(),
        from: kernel.from.clone(),
        folder: kernel.folder(cache).display().to_string(),
    }
}
