//! Why a file or the cache yields no kernel.

use std::io;
use std::path::Path;

use thiserror::Error;

/// A kernel that can't be had.
#[derive(Debug, Error)]
#[error("{what}: {problem}")]
pub(crate) struct Error {
    /// The file, or the version that was asked for.
    what: String,
    problem: Problem,
}

impl Error {
    /// A problem of this file or version.
    pub(crate) fn new(what: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self {
            what: what.into(),
            problem: problem.into(),
        }
    }

    /// A problem of this file.
    pub(crate) fn of(file: &Path, problem: impl Into<Problem>) -> Self {
        Self::new(file.display().to_string(), problem)
    }
}

/// What is wrong, and what to do.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    /// An I/O error, or damaged contents.
    #[error("can't be read: {0}")]
    Unreadable(io::Error),
    /// The cache can't be changed.
    #[error("can't be written: {0}; BPFLAB_KERNELS names another folder for the cache")]
    Unwritable(io::Error),
    /// The file ends early.
    #[error("truncated: the file ends before its contents do; download it again")]
    Truncated,
    /// Neither an image nor a package.
    #[error(
        "not a kernel: neither an image (a bzImage for x86-64, an Image for arm64) nor a \
         package (.deb, .rpm)"
    )]
    NotAKernel,
    /// A package breaks its format.
    #[error("not a valid package: {0}")]
    Malformed(String),
    /// A package in a form that is not read.
    #[error("{0}; unpack the package with its own tools, and name the vmlinuz in it")]
    Unsupported(String),
    /// An image or a module for another machine.
    #[error("`{0}` is not for x86-64 or arm64")]
    Foreign(String),
    /// A package of debug symbols.
    #[error("debug symbols, no kernel; use the package without `-dbg`, `-dbgsym` or `-debuginfo`")]
    DebugSymbols,
    /// A package with nothing that a guest needs.
    #[error("no kernel image and no modules in this package; {}", seek(.0))]
    Nothing(Vec<String>),
    /// Modules, whose image is in another package.
    #[error("modules of {0}, but no kernel image; add it together with its package: {IMAGE_IN}")]
    NoImage(String),
    /// An image that does not tell its release.
    #[error("the image does not tell its release; name the file itself to use it")]
    NoRelease,
    /// A file of the cache that is no module.
    #[error("not an ELF object; remove the kernel from the cache and add it again")]
    NoObject,
    /// A version that the cache does not have.
    #[error(
        "no such file, and no such kernel in the cache, which has {}. {GET}",
        if .there.is_empty() { "none" } else { there }
    )]
    NotThere {
        /// What the cache has; may be empty.
        there: String,
    },
    /// `remove` with a version that means several.
    #[error("several kernels of the cache match: {0}; write one of them in full")]
    Several(String),
}

/// Which package of a kernel has the image.
const IMAGE_IN: &str = "linux-image-VERSION or linux-binary-VERSION (Debian), \
linux-image-unsigned-VERSION (Ubuntu), kernel-core (Fedora)";

/// How to get a kernel. `docs/live.md` has more of it.
pub(crate) const GET: &str = "\
To add one, download it with `apt-get download linux-image-VERSION-cloud-amd64-unsigned` \
(Debian), `apt-get download linux-image-unsigned-VERSION-generic linux-modules-VERSION-generic` \
(Ubuntu) or `dnf download kernel-core kernel-modules-core` (Fedora), then run \
`bpflab kernels add FILE…`";

/// Which package to use instead of one that depends on these.
fn seek(requires: &[String]) -> String {
    match requires {
        [] => format!("use {IMAGE_IN}"),
        names => format!("use what it depends on: {}", names.join(", ")),
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Unreadable(error),
        }
    }
}
