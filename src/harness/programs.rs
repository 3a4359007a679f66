//! The loaded programs of a `Vm`, and how a caller names one.

use std::sync::Arc;

use super::attach_point::Attached;
use super::error::{Error, Result, list};
use super::interrupt::Interrupts;
use crate::engine::{Budget, Counting, Image};
use crate::verifier::Verification;
use crate::vm::{EngineKind, ProgramHandle};

/// The loaded programs, where they are attached, and how to run them. A `Vm` and the events
/// that fire in the middle of its runs share them.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// By program handle.
    pub(super) images: Vec<Arc<Image>>,
    /// By program handle: the verifier's result.
    pub(super) verifications: Vec<Arc<Verification>>,
    /// Attachments, in the order in which they were made.
    pub(super) attached: Vec<Attached>,
    /// Events that fire in the middle of runs.
    pub(super) interrupts: Interrupts,
    pub(super) engine: EngineKind,
    pub(super) budget: Budget,
    pub(super) counting: Counting,
}

impl Programs {
    /// The same programs for another CPU, whose interrupts have counts of their own.
    pub fn for_cpu(self: &Arc<Self>) -> Arc<Self> {
        if self.interrupts.is_empty() {
            return Arc::clone(self);
        }
        Arc::new(Self {
            interrupts: self.interrupts.copied(),
            ..Self::clone(self)
        })
    }

    /// The loaded form of a program.
    pub fn image(&self, program: ProgramHandle) -> Result<&Arc<Image>> {
        let image = self.images.get(program.index());
        image.ok_or_else(|| self.no_program(&format!("#{}", program.0)))
    }

    /// The handle of the program with this name; of several, that of the one loaded last.
    pub fn by_name(&self, name: &str) -> Result<ProgramHandle> {
        let mut images = self.images.iter();
        let found = images.rposition(|image| image.program().name == name);
        let found = found.and_then(|index| u32::try_from(index).ok());
        found
            .map(ProgramHandle)
            .ok_or_else(|| self.no_program(name))
    }

    /// The error for a program that is not loaded.
    pub fn no_program(&self, name: &str) -> Error {
        let names = self
            .images
            .iter()
            .map(|image| image.program().name.as_str());
        Error::NoProgram {
            name: name.to_owned(),
            there: list(names),
        }
    }
}

/// Which program of a [`Vm`](super::Vm) is meant: its name, or its
/// [handle](super::Vm::program_handle), since programs of several objects may have one name.
pub trait WhichProgram {
    /// The program's handle among the loaded ones.
    ///
    /// # Errors
    /// [`Error::NoProgram`] with the names of the loaded programs.
    #[doc(hidden)]
    fn handle(&self, programs: &Programs) -> Result<ProgramHandle>;
}

impl WhichProgram for ProgramHandle {
    fn handle(&self, programs: &Programs) -> Result<ProgramHandle> {
        programs.image(*self).map(|_| *self)
    }
}

impl WhichProgram for str {
    fn handle(&self, programs: &Programs) -> Result<ProgramHandle> {
        programs.by_name(self)
    }
}

impl WhichProgram for String {
    fn handle(&self, programs: &Programs) -> Result<ProgramHandle> {
        programs.by_name(self)
    }
}

impl<T: WhichProgram + ?Sized> WhichProgram for &T {
    fn handle(&self, programs: &Programs) -> Result<ProgramHandle> {
        T::handle(self, programs)
    }
}
