//! Calls by way of the run: of functions to which other programs are attached, and of callbacks.

use super::super::attached::{Attachment, TracedCall};
use super::super::image::Image;
use super::super::stack::{MAX_FRAMES, STRIDE};
use super::run::Run;
use crate::lower::{Lowered, Target};
use crate::util::Pc;
use crate::vm::{EngineKind, Fault, FaultKind, Machine};

impl<'a> Run<'a> {
    /// Calls a function of the program, or what is attached to it: the extension in its place, or
    /// the programs that trace it before and after it. Returns r0. The operation at `at` causes
    /// the call.
    pub(super) fn call_attached(
        &mut self,
        machine: &mut Machine,
        at: Target,
        function: u16,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let image = self.image;
        let start = self.lowered.functions().get(usize::from(function));
        let start = start.map_or(Pc(0), |function| function.start);
        match image.attached_at(start.0.into()) {
            None => self.call_nested(machine, at, function, args),
            Some(Attachment::Replaced(program)) => {
                let extension = self.images.get(program.index());
                // `Image::may_start_fast` has found it.
                let Some((extension, lowered)) = extension.and_then(|it| Some((it, it.lowered()?)))
                else {
                    return Err(self.fault(at, FaultKind::OutOfProgram(-1)));
                };
                lowered.read_known(&mut machine.world, &mut self.known);
                if self.is_native && extension.native(self.counting).is_none() {
                    self.switched_to
                        .get_or_insert(extension.ran_on_with(EngineKind::Jit, self.counting));
                }
                self.call_program(machine, at, (extension, lowered), args)
            }
            Some(Attachment::Traced { event, args: count }) => {
                let passed = args.get(..*count).unwrap_or(&args);
                let call = TracedCall::enter(machine, event, passed);
                let call = call.map_err(|problem| problem.at(|kind| self.fault(at, kind)))?;
                let r0 = self.call_nested(machine, at, function, args)?;
                let left = call.leave(machine, r0);
                left.map_err(|problem| problem.at(|kind| self.fault(at, kind)))?;
                Ok(r0)
            }
        }
    }

    /// Runs a function of the program in the middle of another.
    fn call_nested(
        &mut self,
        machine: &mut Machine,
        at: Target,
        function: u16,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        self.make_room(machine, at)?;
        self.nested(machine, |run, machine| {
            run.function(machine, at, function, args)
        })
    }

    /// Runs another program in the middle of a function of this one. An exception of the other
    /// ends only the other.
    fn call_program(
        &mut self,
        machine: &mut Machine,
        at: Target,
        (image, lowered): (&'a Image, &'a Lowered),
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        self.make_room(machine, at)?;
        self.nested(machine, |run, machine| {
            run.set_program(machine, image, lowered);
            run.boundary = run.host.frame_end - STRIDE as u64;
            let callers = run.saved_callers.len();
            let result = run.function(machine, at, 0, args);
            run.catch(machine, result, callers)
        })
    }

    /// Ensures that there are frames for functions that are called now.
    fn make_room(&mut self, machine: &mut Machine, at: Target) -> Result<(), Box<Fault>> {
        let depth = self.depth();
        let room = self.frames.reach(machine, depth);
        room.map_err(|full| self.fault(at, full.into()))?;
        match depth < MAX_FRAMES {
            true => Ok(()),
            false => Err(self.fault(at, FaultKind::Depth(MAX_FRAMES))),
        }
    }
}
