//! Attaching programs and detaching them.

use super::attach_point::{AttachPoint, Attached};
use super::error::{Error, Result};
use super::vm::Vm;
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::Errno;
use crate::vm::ProgramHandle;
use crate::vm::events::Event;

impl Vm {
    /// Attaches every program to the place that its section name says, in the
    /// order of the object. Programs that are attached already stay where they are.
    ///
    /// # Errors
    /// [`Error::Attach`] for a program whose section name leaves its place open,
    /// [`Error::Context`] for one that reads more than the tracepoint has.
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
    /// place open; [`Error::Context`] where the program reads more than is there.
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
        self.set_attached(handle, point)
    }

    /// Attaches a program to a place of the test's choice: `group/name` for
    /// tracepoints, the hook's name for other types.
    ///
    /// # Errors
    /// [`Error::NoProgram`]; [`Error::Context`] where the program reads more than is
    /// there.
    pub fn attach_to(&mut self, program: &str, target: &str) -> Result<()> {
        let handle = self.program_handle(program)?;
        let mut aimed = Program::clone(self.images[handle.index()].program());
        aimed.attach_target = Some(target.to_owned());
        match AttachPoint::of(&aimed) {
            Some(point) => self.set_attached(handle, point),
            None => Ok(()),
        }
    }

    fn set_attached(&mut self, program: ProgramHandle, point: AttachPoint) -> Result<()> {
        let event = match &point {
            AttachPoint::Tracepoint(name) => self.tracepoint(name).ok(),
            AttachPoint::RawTracepoint(name) => self.raw_tracepoint(name).ok(),
            AttachPoint::Hook(..) => None,
        };
        if let Some(event) = event {
            self.check_context(program, &event)?;
        }
        self.attachments += 1;
        let order = self.attachments;
        self.attached[program.index()] = Some(Attached { point, order });
        Ok(())
    }

    /// Whether a tracepoint has all that a verified program reads of it. The kernel
    /// looks when the program is attached (`perf_event_set_bpf_prog`,
    /// `kernel/events/core.c`; `__bpf_probe_register`, `kernel/trace/bpf_trace.c`).
    ///
    /// # Errors
    /// [`Error::Context`].
    pub(super) fn check_context(&self, program: ProgramHandle, event: &Event) -> Result<()> {
        let Some(known) = self.verification(program).map(|known| &known.outcome) else {
            return Ok(());
        };
        let (Ok(verified), Some(there)) = (known, event.readable()) else {
            return Ok(());
        };
        let image = verified.program();
        let errno = match image.prog_type {
            ProgType::Tracepoint => Errno::EACCES,
            ProgType::RawTracepoint => Errno::EINVAL,
            _ => return Ok(()),
        };
        let needed = verified.requirements().context;
        if needed <= there {
            return Ok(());
        }
        Err(Error::Context {
            program: image.name.clone(),
            event: event.name().to_owned(),
            needed,
            there,
            errno,
        })
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
