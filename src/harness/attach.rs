//! Attaching programs and detaching them.

use super::attach_point::{AttachPoint, Attached};
use super::error::{Error, Result};
use super::vm::Vm;
use crate::program::Program;
use crate::vm::ProgramHandle;

impl Vm {
    /// Attaches every program to the place that its section name says, in the
    /// order of the object. Programs that are attached already stay where they are.
    ///
    /// # Errors
    /// [`Error::Attach`] for a program whose section name leaves its place open.
    pub fn attach_all(&mut self) -> Result<()> {
        for handle in self.handles() {
            if self
                .attached
                .get(handle.index())
                .is_some_and(Option::is_none)
            {
                self.attach_handle(handle)?;
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
        self.attach_handle(self.program_handle(program)?)
    }

    /// By handle: programs of several objects may have one name.
    fn attach_handle(&mut self, handle: ProgramHandle) -> Result<()> {
        let image = self.images[handle.index()].program();
        let point = AttachPoint::of(image).ok_or_else(|| Error::Attach {
            program: image.name.clone(),
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
