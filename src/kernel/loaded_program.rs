//! A program that the kernel has accepted.

use std::os::fd::BorrowedFd;

use super::sys::ProgFd;
use crate::program::Program;
use crate::spec::ProgType;

/// A program in the kernel, which is unloaded when this is dropped.
#[derive(Debug)]
pub struct LoadedProgram {
    fd: ProgFd,
    name: String,
    prog_type: ProgType,
}

impl LoadedProgram {
    pub(super) fn new(fd: ProgFd, program: &Program) -> Self {
        Self {
            fd,
            name: program.name.clone(),
            prog_type: program.prog_type,
        }
    }

    /// Name of the C function.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Program type.
    #[must_use]
    pub const fn prog_type(&self) -> ProgType {
        self.prog_type
    }

    pub(super) const fn fd(&self) -> &ProgFd {
        &self.fd
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
