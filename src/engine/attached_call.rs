//! Calls of functions to which other programs are attached.

use super::attached::Attachment;
use super::checked::Run;
use super::stack::Frame;
use crate::isa::Reg;
use crate::vm::attach::Hook;
use crate::vm::events::Event;
use crate::vm::kfuncs::kernel_context;
use crate::vm::{Fault, FaultKind, HelperProblem, Machine};

impl<'a> Run<'a> {
    /// Pushes the frame of a called function, or of the extension in its place. Returns the slot
    /// where execution continues.
    pub(super) fn push_callee(
        &mut self,
        machine: &mut Machine,
        mut frame: Frame<'a>,
    ) -> Result<i64, Box<Fault>> {
        let at = frame.start;
        match self.image.attached_at(at) {
            None => {
                self.push_frame(machine, frame)?;
                Ok(at)
            }
            Some(Attachment::Replaced(program)) => {
                let Some(extension) = self.images.get(program.index()) else {
                    let problem = "the extension of the function is not loaded".to_owned();
                    return Err(self.fault(frame.from, FaultKind::Interrupt(problem)));
                };
                frame.start = 0;
                frame.frame_escapes = extension.frame_escapes(0);
                self.push_frame(machine, frame)?;
                self.turn_to(extension);
                self.begin(machine, 0);
                Ok(0)
            }
            Some(Attachment::Traced { event, args }) => {
                let event = self.called(machine, frame.from, event, *args)?;
                self.fire(machine, frame.from, Hook::Fentry, &event)?;
                frame.traced = Some(Box::new(event));
                self.push_frame(machine, frame)?;
                Ok(at)
            }
        }
    }

    /// Before the innermost function returns: if it is traced, runs the programs at its exit.
    pub(super) fn leave_traced(&mut self, machine: &mut Machine) -> Result<(), Box<Fault>> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let (from, Some(mut event)) = (frame.from, frame.traced.take()) else {
            return Ok(());
        };
        // A function without a result has no such field.
        let _ = event.change("ret", &self.reg(Reg::R0).into());
        self.fire(machine, from, Hook::Fexit, &event)
    }

    /// The event of a call with the arguments in r1 to r5. The context is passed as the
    /// kernel's object, which tracing programs see.
    fn called(
        &self,
        machine: &Machine,
        from: i64,
        event: &Event,
        args: usize,
    ) -> Result<Event, Box<Fault>> {
        let problem = |problem: String| self.fault(from, FaultKind::Interrupt(problem));
        let context = machine.current().map(|current| current.placed.r1());
        let mut event = event.clone();
        for (number, reg) in (1..=args).zip(Reg::ARGUMENTS) {
            let mut value = self.reg(reg);
            if context == Some(value) {
                value = kernel_context(machine, value).map_err(|why| problem(why.to_string()))?;
            }
            event = event
                .arg(number, value)
                .map_err(|why| problem(why.to_string()))?;
        }
        Ok(event)
    }

    fn fire(
        &self,
        machine: &mut Machine,
        from: i64,
        hook: Hook,
        event: &Event,
    ) -> Result<(), Box<Fault>> {
        match machine.fire_hook(hook, event) {
            Ok(_) => Ok(()),
            // The fault has its own position.
            Err(HelperProblem::Callback(fault)) => Err(fault),
            Err(problem) => Err(self.fault(from, FaultKind::Interrupt(problem.to_string()))),
        }
    }
}
