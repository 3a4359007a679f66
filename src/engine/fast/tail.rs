//! Tail calls, and the switch to the checked interpreter.

use smallvec::smallvec;

use super::super::checked;
use super::super::image::Image;
use super::super::stack::{Frame, MAX_FRAMES, STRIDE};
use super::run::{Next, Run};
use crate::lower::{Lowered, Target};
use crate::spec::limits::{MAX_TAIL_CALLS, STACK_SIZE};
use crate::vm::{EngineKind, Fallback, Fault, FaultKind, Machine, RanOn};

/// The target of a tail call.
pub(crate) enum Tail<'a> {
    /// None: execution continues as if nothing had happened.
    Nowhere,
    /// A program for the checked interpreter.
    Checked(&'a Image),
    /// A program that may run here.
    Fast(&'a Image, &'a Lowered),
}

impl<'a> Run<'a> {
    /// The target of `bpf_tail_call(r1, r2, r3)` by the operation at `at`. If there is one,
    /// the call is counted, and the frames for the program are there.
    pub(crate) fn tail_target(
        &mut self,
        machine: &mut Machine,
        at: Target,
    ) -> Result<Tail<'a>, Box<Fault>> {
        let [_, context, map, index, ..] = self.host.regs;
        let target = machine.tail_call_target(map, index);
        let image = target.and_then(|program| self.images.get(program.index()));
        let Some(image) = image.filter(|_| self.tail_calls < MAX_TAIL_CALLS) else {
            return Ok(Tail::Nowhere);
        };
        self.tail_calls += 1;
        let depth = self.depth();
        if depth > MAX_FRAMES {
            return Err(self.fault(at, FaultKind::Depth(MAX_FRAMES)));
        }
        let room = self.frames.reach(machine, depth.saturating_sub(1));
        room.map_err(|full| self.fault(at, full.into()))?;
        let starts = image.may_start_fast(self.images, machine, context);
        Ok(match starts {
            Ok((lowered, _)) => Tail::Fast(image, lowered),
            Err(_) => Tail::Checked(image),
        })
    }

    /// `bpf_tail_call(r1, r2, r3)` in the loop over operations.
    pub(crate) fn tail_call(
        &mut self,
        machine: &mut Machine,
        at: Target,
    ) -> Result<Next, Box<Fault>> {
        match self.tail_target(machine, at)? {
            Tail::Nowhere => Ok(Next::Follow),
            Tail::Checked(image) => {
                self.host.regs[0] = self.run_checked(machine, image)?;
                // The checked interpreter has left the frame already. Enter it again for
                // the exit, which does nothing else.
                self.host.frame_end -= STRIDE as u64;
                self.frame_escapes = false;
                Ok(Next::Exit)
            }
            // An exception ends the program, but not the callers of a function.
            Tail::Fast(image, lowered)
                if lowered.exceptions().is_some() && self.host.frame_end != self.boundary =>
            {
                self.host.regs[0] = self.run_in_place(machine, image, lowered)?;
                // The program has left the frame already, and made it anew if it escapes.
                self.frame_escapes = false;
                Ok(Next::Exit)
            }
            Tail::Fast(image, lowered) => {
                self.leave_to(machine, image, lowered);
                if let Some(main) = lowered.functions().first() {
                    self.take_frame(main);
                }
                Ok(Next::Goto(0))
            }
        }
    }

    /// Hands the innermost frame with its contents over to another program.
    pub(crate) fn leave_to(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) {
        if self.frame_escapes {
            self.renew(machine);
        }
        if self.is_native && image.native(self.counting).is_none() {
            self.switched_to
                .get_or_insert(image.ran_on_with(EngineKind::Jit, self.counting));
        }
        self.set_program(machine, image, lowered);
        lowered.read_known(&mut machine.world, &mut self.known);
        let needs = lowered.functions().first().map_or(0, |main| main.stack);
        self.make_clean(needs.into());
    }

    /// Runs a program in the innermost frame, which it takes over, to its end; returns r0. An
    /// exception of the program ends only the program.
    pub(crate) fn run_in_place(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) -> Result<u64, Box<Fault>> {
        self.nested(machine, |run, machine| {
            run.leave_to(machine, image, lowered);
            run.boundary = run.host.frame_end;
            let callers = run.saved_callers.len();
            let result = match run.native() {
                Some(native) => {
                    run.host.frame_end += STRIDE as u64;
                    run.execute_native(machine, native.tail_entry_point())
                }
                None => {
                    if let Some(main) = lowered.functions().first() {
                        run.take_frame(main);
                    }
                    run.thread(machine, 0, callers)
                }
            };
            run.catch(machine, result, callers)
        })
    }

    /// Runs a program in the innermost frame, which it takes over, in the checked
    /// interpreter to its end; returns r0.
    pub(crate) fn run_checked(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
    ) -> Result<u64, Box<Fault>> {
        self.switched_to = Some(RanOn::checked(Fallback::TailCall));
        let mut frame = Frame::new(0, 0, 0, image, &self.host.regs);
        frame.frame_escapes = self.frame_escapes;
        // The program may read all of its frame.
        self.make_clean(STACK_SIZE as u64);
        let outer_frames = self.depth().saturating_sub(1);
        let mut run = checked::Run {
            watch: None,
            is_observed: image.counts().is_some(),
            images: self.images,
            image,
            stack: &mut *self.frames,
            regs: self.host.regs,
            frames: smallvec![frame],
            outer_frames,
            budget: self.budget,
            executed: self.executed,
            tail_calls: self.tail_calls,
            callbacks: 0,
        };
        run.leave_to(machine);
        let result = run.execute(machine, 0, 0);
        let (executed, tail_calls) = (run.executed, run.tail_calls);
        drop(run);
        (self.executed, self.tail_calls) = (executed, tail_calls);
        self.host.frame_end += STRIDE as u64;
        self.refresh_pointers(machine);
        result
    }
}
