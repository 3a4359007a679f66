//! Tail calls, and the way over to the checked interpreter.

use smallvec::smallvec;

use super::super::checked;
use super::super::image::Image;
use super::super::stack::{Frame, MAX_FRAMES, STRIDE};
use super::run::{Next, Run};
use crate::lower::{Lowered, Target};
use crate::spec::limits::{MAX_TAIL_CALLS, STACK_SIZE};
use crate::vm::{EngineKind, Fallback, Fault, FaultKind, Machine, RanOn};

/// Where a tail call leads.
pub(crate) enum Tail<'a> {
    /// On as if nothing had happened.
    Nowhere,
    /// To a program for the checked interpreter.
    Checked(&'a Image),
    /// To a program that may run here.
    Fast(&'a Image, &'a Lowered),
}

impl<'a> Run<'a> {
    /// Where `bpf_tail_call(r1, r2, r3)` by the operation at `at` leads; it counts if it
    /// leads somewhere, and there are frames for that program then.
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
        let lowered = image.lowered();
        let fast = lowered.filter(|lowered| lowered.may_start(machine, context).is_ok());
        Ok(match fast {
            Some(lowered) => Tail::Fast(image, lowered),
            None => Tail::Checked(image),
        })
    }

    /// `bpf_tail_call(r1, r2, r3)`, as the loop over operations makes it.
    pub(crate) fn tail_call(
        &mut self,
        machine: &mut Machine,
        at: Target,
    ) -> Result<Next, Box<Fault>> {
        match self.tail_target(machine, at)? {
            Tail::Nowhere => Ok(Next::Follow),
            Tail::Checked(image) => {
                self.host.regs[0] = self.run_checked(machine, image)?;
                // That has left the frame already: an exit leaves it, and no more.
                self.host.frame_end -= STRIDE as u64;
                self.lends = false;
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

    /// Leaves the innermost frame, with what is in it, to another program.
    pub(crate) fn leave_to(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) {
        if self.lends {
            self.renew(machine);
        }
        if self.is_native && image.native().is_none() {
            self.led_to.get_or_insert(image.ran_on(EngineKind::Jit));
        }
        self.set_program(machine, image, lowered);
        lowered.read_known(&mut machine.world, &mut self.known);
        let needs = lowered.functions().first().map_or(0, |main| main.stack);
        self.make_clean(needs.into());
    }

    /// Runs a program in the innermost frame, which is left to it, in the checked
    /// interpreter to its end; its r0.
    pub(crate) fn run_checked(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
    ) -> Result<u64, Box<Fault>> {
        self.led_to = Some(RanOn::checked(Fallback::TailCall));
        let mut frame = Frame::new(0, 0, 0, image, &self.host.regs);
        frame.lends = self.lends;
        // It may look at all of its frame.
        self.make_clean(STACK_SIZE as u64);
        let around = self.depth().saturating_sub(1);
        let mut run = checked::Run {
            watch: None,
            images: self.images,
            image,
            stack: &mut *self.frames,
            regs: self.host.regs,
            frames: smallvec![frame],
            around,
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
        self.see_pointers(machine);
        result
    }
}
