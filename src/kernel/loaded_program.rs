//! A program that the kernel accepted.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::error::{Command, KernelError};
use super::sys::{LinkFd, ProgFd, ProgramInfo};
use super::usdt_specs::UsdtSpecs;
use crate::program::Program;
use crate::spec::{AttachType, ProgType};

/// An extension in place of the function that it was loaded for; dropping it puts the function back.
#[derive(Debug)]
pub(crate) struct Replacement(#[expect(dead_code, reason = "closed when dropped")] LinkFd);

/// A program in the kernel; dropping it unloads the program.
#[derive(Debug)]
pub struct LoadedProgram {
    fd: ProgFd,
    name: String,
    prog_type: ProgType,
    attach_type: Option<AttachType>,
    /// The map with the locations of USDT arguments, if the program reads them.
    usdt_specs: Option<Arc<UsdtSpecs>>,
}

impl LoadedProgram {
    pub(super) fn new(
        fd: ProgFd,
        program: &Program,
        attach_type: Option<AttachType>,
        specs: Option<Arc<UsdtSpecs>>,
    ) -> Self {
        Self {
            fd,
            name: program.name.clone(),
            prog_type: program.prog_type,
            attach_type,
            usdt_specs: specs,
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

    /// The kernel's information on it: its id, how often it ran and was skipped.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn info(&self) -> Result<ProgramInfo, KernelError> {
        let info = self.fd.info();
        info.map_err(|errno| {
            let object = format!("program {}", self.name);
            KernelError::new(Command::ObjGetInfo, object, errno)
        })
    }

    /// The expected attach type that it was loaded with, for program types that have one.
    #[must_use]
    pub const fn attach_type(&self) -> Option<AttachType> {
        self.attach_type
    }

    /// Puts an extension in place of the function that it was loaded for (`BPF_RAW_TRACEPOINT_OPEN`).
    pub(crate) fn replace(&self) -> Result<Replacement, KernelError> {
        let link = LinkFd::raw_tracepoint(&self.fd, None, 0);
        link.map(Replacement).map_err(|errno| {
            let object = format!("program {}", self.name);
            KernelError::new(Command::RawTracepointOpen, object, errno)
        })
    }

    pub(super) const fn usdt_specs(&self) -> Option<&Arc<UsdtSpecs>> {
        self.usdt_specs.as_ref()
    }

    pub(super) fn into_fd(self) -> ProgFd {
        self.fd
    }

    pub(super) const fn fd(&self) -> &ProgFd {
        &self.fd
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
