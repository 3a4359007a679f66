//! Where programs are attached, and which of them an event fires.

use super::Vm;
use super::error::{Error, Result};
use crate::program::Program;
use crate::spec::{AttachType, ProgType};
use crate::vm::ProgramHandle;

/// A place in the kernel that programs are attached to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AttachPoint {
    /// A tracepoint for `BPF_PROG_TYPE_TRACEPOINT`: `group/name`.
    Tracepoint(String),
    /// A tracepoint's raw arguments, by its name: `BPF_PROG_TYPE_RAW_TRACEPOINT`
    /// and, typed through BTF, `BPF_TRACE_RAW_TP`.
    RawTracepoint(String),
    /// Any other hook, by program type and what the section name says of it.
    Hook(ProgType, Option<String>),
}

/// An attached program's place, and its turn there.
#[derive(Debug, Clone)]
pub(super) struct Attached {
    pub point: AttachPoint,
    /// Rises with each attachment.
    pub order: u64,
}

impl AttachPoint {
    /// The place that a program's section name asks for; `None` where the name
    /// leaves it open (`SEC("tp")`).
    #[must_use]
    pub fn of(program: &Program) -> Option<Self> {
        let target = program.attach_target.clone();
        Some(match (program.prog_type, program.expected_attach_type) {
            (ProgType::Tracepoint, _) => Self::Tracepoint(target?),
            (ProgType::RawTracepoint | ProgType::RawTracepointWritable, _)
            | (ProgType::Tracing, Some(AttachType::TraceRawTp)) => Self::RawTracepoint(target?),
            (prog_type, _) => Self::Hook(prog_type, target),
        })
    }
}

impl Vm {
    /// Attaches every program to the place that its section name says, in the
    /// order of the object. Programs that are attached already stay where they are.
    ///
    /// # Errors
    /// [`Error::Attach`] for a program whose section name leaves its place open.
    pub fn attach_all(&mut self) -> Result<()> {
        for index in 0..self.images.len() {
            if self.attached.get(index).is_some_and(Option::is_none) {
                let name = self.images[index].program().name.clone();
                self.attach(&name)?;
            }
        }
        Ok(())
    }

    /// Attaches one program to the place that its section name says.
    ///
    /// # Errors
    /// [`Error::NoProgram`]; [`Error::Attach`] where the section name leaves the
    /// place open.
    pub fn attach(&mut self, program: &str) -> Result<()> {
        let handle = self.program_handle(program)?;
        let image = self.images[handle.index()].program();
        let point = AttachPoint::of(image).ok_or_else(|| Error::Attach {
            program: program.to_owned(),
            why: format!(
                "its section '{}' does not say where; use `attach_to` with a name like \
                 'syscalls/sys_enter_write'",
                image.section
            ),
        })?;
        self.set_attached(handle, point);
        Ok(())
    }

    /// Attaches a program to a place of the test's choice: `group/name` for
    /// tracepoints, the hook's name for other types.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn attach_to(&mut self, program: &str, target: &str) -> Result<()> {
        let handle = self.program_handle(program)?;
        let mut aimed = Program::clone(self.images[handle.index()].program());
        aimed.attach_target = Some(target.to_owned());
        if let Some(point) = AttachPoint::of(&aimed) {
            self.set_attached(handle, point);
        }
        Ok(())
    }

    fn set_attached(&mut self, program: ProgramHandle, point: AttachPoint) {
        self.attachments += 1;
        let order = self.attachments;
        self.attached[program.index()] = Some(Attached { point, order });
    }

    /// Detaches a program; events no longer fire it.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn detach(&mut self, program: &str) -> Result<()> {
        let handle = self.program_handle(program)?;
        self.attached[handle.index()] = None;
        Ok(())
    }
}
