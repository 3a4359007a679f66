//! Kernels that a guest can boot: files, and a cache of kernels taken from packages.

mod cache;
#[cfg(test)]
mod tests;
mod versions;

use std::path::{Path, PathBuf};

use super::package::{self, Problem};
pub(crate) use super::package::{Arch, Error, GET, Module};

pub(crate) use cache::{Cached, MODULES, add, list, remove};

/// A kernel that a guest can boot.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// What tables call it: its release, else the name of its file.
    pub name: String,
    /// The machine that it is for.
    pub arch: Arch,
    /// The image, as it is in its file, or unpacked from it.
    pub kernel: Vec<u8>,
    /// Modules, each behind those that it needs.
    pub modules: Vec<Module>,
}

/// Where the cache is: `$BPFLAB_KERNELS`, else `$XDG_CACHE_HOME/bpflab/kernels`, else
/// `~/.cache/bpflab/kernels`.
pub(crate) fn cache_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("BPFLAB_KERNELS") {
        return folder.into();
    }
    let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")));
    caches.unwrap_or_default().join("bpflab/kernels")
}

/// The kernel that `--vm` names: a file with an image or a package, or a version in the cache.
/// A version matches the newest release that begins with it: `6.12` matches `6.12.*`. It
/// may have `x86_64/` or `arm64/` before it; this machine's kernels come first.
///
/// # Errors
/// There is no such kernel, or it can't be read.
pub(crate) fn find(image: &str, cache: &Path, wanted: &[&str]) -> Result<Image, Error> {
    let file = Path::new(image);
    if file.is_file() {
        return from_file(file, wanted);
    }
    let (cached, _) = cache::select(cache, image)?;
    Ok(Image {
        kernel: cached.kernel(cache)?,
        modules: package::with_needs(cached.modules(cache)?, wanted),
        name: cached.release,
        arch: cached.arch,
    })
}

/// The kernel in an image or a package.
fn from_file(file: &Path, wanted: &[&str]) -> Result<Image, Error> {
    let found = package::read(file, wanted)?;
    let name = found.release.unwrap_or_else(|| package::file_name(file));
    let Some(kernel) = found.kernel else {
        return Err(Error::of(file, Problem::NoImage(name)));
    };
    Ok(Image {
        name,
        arch: found.arch,
        kernel,
        modules: package::with_needs(found.modules, wanted),
    })
}
