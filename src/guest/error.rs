//! Why a command did not run in a guest.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::kernels::Arch;

/// Why a command did not run in a guest, or not to its end.
#[derive(Debug, Error)]
pub(crate) enum GuestError {
    /// qemu is not installed.
    #[error(
        "{0} is not installed; install it: `apt install qemu-system-x86` (Debian, Ubuntu), \
         `dnf install qemu-system-x86-core` (Fedora), or for arm64 kernels `qemu-system-arm` and \
         `qemu-system-aarch64-core`"
    )]
    NoQemu(&'static str),
    /// The kernel is for another machine.
    #[error(
        "a kernel for {}, where this bpflab can't run; --guest-bpflab names one that was built \
         for it",
        .0.name()
    )]
    OtherMachine(Arch),
    /// The output can't be written.
    #[error(transparent)]
    Output(io::Error),
    /// The host can't start or feed the machine.
    #[error("the virtual machine can't be started: {0}")]
    Start(#[source] io::Error),
    /// A file can't be read, written, or lacks a library.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The guest did not come up, ended too soon, or hung.
    #[error("{why}{}", LastLines(console))]
    Gone {
        /// What was seen.
        why: String,
        /// The end of its console.
        console: Vec<String>,
    },
}

/// The end of a console, if anything was on it.
struct LastLines<'a>(&'a [String]);

impl fmt::Display for LastLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; its console is empty");
        }
        write!(f, "; its last lines:\n  {}", self.0.join("\n  "))
    }
}

impl GuestError {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, error }
    }
}
