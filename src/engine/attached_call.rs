//! Calls of functions to which other programs are attached, in the checked interpreter.

use super::attached::{Attachment, TracedCall};
use super::checked::Run;
use super::stack::Frame;
use crate::isa::Reg;
use crate::vm::{Fault, FaultKind, Machine};

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
                let passed = Reg::ARGUMENTS.map(|reg| self.reg(reg));
                let passed = passed.get(..*args).unwrap_or(&passed);
                let call = TracedCall::enter(machine, event, passed);
                let call =
                    call.map_err(|problem| problem.at(|kind| self.fault(frame.from, kind)))?;
                frame.traced = Some(call);
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
        let (from, Some(call)) = (frame.from, frame.traced.take()) else {
            return Ok(());
        };
        let left = call.leave(machine, self.reg(Reg::R0));
        left.map_err(|problem| problem.at(|kind| self.fault(from, kind)))
    }
}
