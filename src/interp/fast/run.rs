//! A run under way: frames, calls, tail calls, callbacks, and the way over to the
//! checked interpreter.

use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::checked::{self, Budget, Checked, Finished};
use super::super::image::Image;
use super::super::native::Native;
use super::super::stack::{Frame, Stack};
use super::context::POINTERS;
use super::threaded::cell::Host;
use super::threaded::code::Threaded;
use crate::isa::Reg;
use crate::lower::{KNOWN, KnownValues, Lowered, Target};
use crate::spec::limits;
use crate::util::Pc;
use crate::vm::helpers::{self, Call, Callbacks};
use crate::vm::memory::SharedBytes;
use crate::vm::{Fault, FaultKind, HelperProblem, Machine};

/// Why operations stop being executed.
pub(crate) enum Stop {
    /// A fault.
    Fault(Box<Fault>),
    /// A tail call led to a program that is not lowered: the checked interpreter goes
    /// on at its start.
    Checked,
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// Why cells stop being executed.
pub(crate) enum End {
    /// The function ended that was entered first.
    Done,
    /// See [`Stop`].
    Stop(Stop),
    /// The budget may not last until the next look at it: the loop over operations goes
    /// on here.
    Slow(Target),
}

/// A run under way.
#[repr(C)]
pub(crate) struct Run<'a> {
    /// First, for the functions of cells, which get a pointer to it.
    pub host: Host,
    images: &'a [Arc<Image>],
    /// The program that runs now; a tail call changes it.
    image: &'a Image,
    /// Its operations.
    pub lowered: &'a Lowered,
    stack: &'a mut Stack,
    frames: SmallVec<[Level<'a>; limits::MAX_CALL_FRAMES]>,
    pub budget: Budget,
    pub executed: u64,
    tail_calls: u32,
    /// What r1 held at the start.
    pub context_address: u64,
    /// The operations as cells, where these are what is executed.
    pub(super) code: Option<&'a Threaded>,
    /// The machine while cells are executed.
    pub machine: *mut Machine,
    /// The frames that are left when they end, and why they did.
    pub floor: usize,
    pub end: Option<End>,
    /// Whether machine code is what is executed where a program has it, how many
    /// instructions the budget had at the start, and how many were left when machine
    /// code last called or was called.
    pub is_native: bool,
    pub granted: i64,
    pub left: i64,
    /// What added to an address in the packet gives the host address; 0 without a packet.
    pub packet: u64,
    /// The first of the pointers of [`ContextUse`](crate::lower::ContextUse) as they are
    /// at the moment; 0 where there is none.
    pub pointers: [u64; POINTERS],
    /// What helpers return that stay the same for a run, as far as its programs use it.
    pub known: KnownValues,
}

/// A function under way, and how its caller goes on.
struct Level<'a> {
    frame: Frame<'a>,
    /// The caller's.
    lowered: &'a Lowered,
    return_to: Target,
    frame_end: u64,
    /// How many bytes below the frame's end are zero or in use; those below may hold
    /// what an earlier call left.
    clean: u16,
}

/// What to do after an operation.
pub(crate) enum Next {
    /// Go on with the next one.
    Follow,
    /// Go on at another.
    Goto(Target),
    /// The function ends.
    Exit,
}

impl<'a> Run<'a> {
    /// A run of `entry` that is about to begin and may do so. The context and the table
    /// of deltas are host addresses.
    pub(super) fn new(
        checked: &'a mut Checked,
        images: &'a [Arc<Image>],
        (image, lowered): (&'a Image, &'a Lowered),
        (context, deltas): (u64, u64),
        args: [u64; 5],
        budget: Budget,
    ) -> Self {
        let mut run = Self {
            host: Host {
                regs: [0; Reg::COUNT],
                frame_end: 0,
                context,
                deltas,
                base: 0,
                limit: 0,
            },
            images,
            image,
            lowered,
            stack: &mut checked.stack,
            frames: SmallVec::new(),
            budget,
            executed: 0,
            tail_calls: 0,
            context_address: args[0],
            code: image.threaded(),
            machine: ptr::null_mut(),
            floor: 0,
            end: None,
            is_native: false,
            granted: i64::try_from(budget.0).unwrap_or(i64::MAX),
            left: 0,
            packet: 0,
            pointers: [0; POINTERS],
            known: [0; KNOWN],
        };
        run.set_limit();
        run
    }

    /// Runs it.
    pub(super) fn finish(
        mut self,
        machine: &mut Machine,
        args: [u64; 5],
    ) -> Result<Finished, Box<Fault>> {
        self.lowered.read_known(&mut machine.world, &mut self.known);
        let r0 = self.enter(machine, 0, 0, args)?;
        Ok(Finished {
            r0,
            insns: self.executed,
        })
    }

    /// Runs a function in a new frame to its end; its r0.
    fn enter(
        &mut self,
        machine: &mut Machine,
        from: Target,
        function: u16,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let floor = self.frames.len();
        let at = self.push(machine, from, function, from)?;
        let [_, r1, r2, r3, r4, r5, ..] = &mut self.host.regs;
        [*r1, *r2, *r3, *r4, *r5] = args;
        let result = match self.native() {
            Some(native) => self.execute_native(native, machine, at),
            None => self.thread(machine, at, floor),
        };
        match result {
            Ok(r0) => Ok(r0),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Checked) => self.go_on_checked(machine, floor),
        }
    }

    /// Makes the frame of a function that the operation at `from` calls; where it
    /// begins.
    fn push(
        &mut self,
        machine: &mut Machine,
        from: Target,
        function: u16,
        return_to: Target,
    ) -> Result<Target, Box<Fault>> {
        let depth = self.frames.len();
        let lowered = self.lowered;
        let Some(callee) = lowered.functions().get(usize::from(function)) else {
            return Err(self.fault(from, FaultKind::OutOfProgram(-1)));
        };
        if depth == limits::MAX_CALL_FRAMES {
            return Err(self.fault(from, FaultKind::Depth(depth)));
        }
        let entered = self.stack.enter(machine, depth, &callee.frame_name);
        let (address, host) = match entered {
            Ok((address, bytes)) => {
                clear(bytes, callee.stack, 0);
                (address, bytes.host_address())
            }
            Err(full) => return Err(self.fault(from, full.into())),
        };
        let slot = |op| i64::from(lowered.pc(op).0);
        self.frames.push(Level {
            frame: Frame::new(
                i64::from(callee.start.0),
                slot(from),
                slot(return_to),
                self.image,
                &self.host.regs,
            ),
            lowered,
            return_to,
            frame_end: self.host.frame_end,
            clean: callee.stack,
        });
        self.host.regs[Reg::FP.number() as usize] = address.plus(limits::STACK_SIZE as u64);
        self.host.frame_end = host + limits::STACK_SIZE as u64;
        Ok(callee.entry)
    }

    /// A call of a function by the operation at `at`.
    pub(crate) fn call(
        &mut self,
        machine: &mut Machine,
        at: Target,
        function: u16,
    ) -> Result<Target, Stop> {
        Ok(self.push(machine, at, function, at + 1)?)
    }

    /// The function ends; where its caller goes on, unless that is the run itself or a
    /// helper.
    pub(crate) fn exit(&mut self, machine: &mut Machine, floor: usize) -> Option<Target> {
        let level = self.frames.pop()?;
        self.stack.leave(machine, self.frames.len());
        level.frame.restore(&mut self.host.regs);
        self.set_program(level.frame.caller, level.lowered);
        self.host.frame_end = level.frame_end;
        (self.frames.len() > floor).then_some(level.return_to)
    }

    /// The machine code of the program that runs now, if it is to be executed.
    pub(crate) fn native(&self) -> Option<&'a Native> {
        self.image.native().filter(|_| self.is_native)
    }

    /// How many frames there are.
    pub(crate) fn depth(&self) -> usize {
        self.frames.len()
    }

    fn set_program(&mut self, image: &'a Image, lowered: &'a Lowered) {
        if !ptr::eq(self.image, image) {
            (self.image, self.lowered) = (image, lowered);
            self.code = image.threaded();
            self.set_limit();
        }
    }

    /// Whether the frame has loops left; one fewer then.
    pub(crate) fn may_loop(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(level) if level.frame.loops_left > 0 => {
                level.frame.loops_left -= 1;
                true
            }
            _ => false,
        }
    }

    /// `bpf_tail_call(ctx, map, index)`.
    pub(crate) fn tail_call(&mut self, machine: &mut Machine) -> Result<Next, Stop> {
        let [_, context, map, index, ..] = self.host.regs;
        let target = machine.tail_call_target(map, index);
        let image = target.and_then(|program| self.images.get(program.index()));
        let Some(image) = image.filter(|_| self.tail_calls < limits::MAX_TAIL_CALLS) else {
            return Ok(Next::Follow);
        };
        self.tail_calls += 1;
        let lowered = image
            .lowered()
            .filter(|lowered| lowered.may_start(machine, context).is_some());
        let Some(lowered) = lowered else {
            self.image = image;
            return Err(Stop::Checked);
        };
        self.set_program(image, lowered);
        self.see_pointers(machine);
        lowered.read_known(&mut machine.world, &mut self.known);
        let needs = lowered.functions().first().map_or(0, |main| main.stack);
        self.clean(needs);
        Ok(Next::Goto(0))
    }

    /// Makes the frame's bytes zero that only the program needs that it was left to.
    fn clean(&mut self, stack: u16) {
        let depth = self.frames.len().saturating_sub(1);
        if let Some(level) = self.frames.last_mut()
            && let Some(bytes) = self.stack.bytes(depth)
            && level.clean < stack
        {
            clear(bytes, stack, level.clean);
            level.clean = stack;
        }
    }

    /// Goes on in the checked interpreter at the start of the image.
    pub(crate) fn go_on_checked(
        &mut self,
        machine: &mut Machine,
        floor: usize,
    ) -> Result<u64, Box<Fault>> {
        // It may touch all of its frame.
        self.clean(u16::try_from(limits::STACK_SIZE).unwrap_or(u16::MAX));
        let mut run = checked::Run {
            watch: None,
            images: self.images,
            image: self.image,
            stack: &mut *self.stack,
            regs: self.host.regs,
            frames: self.frames.iter().map(|l| l.frame.clone()).collect(),
            budget: self.budget,
            executed: self.executed,
            tail_calls: self.tail_calls,
        };
        let result = run.execute(machine, 0, floor);
        let (regs, executed, tail_calls) = (run.regs, run.executed, run.tail_calls);
        drop(run);
        (self.host.regs, self.executed, self.tail_calls) = (regs, executed, tail_calls);
        // Its frames are gone: those of who called back are left.
        let kept = self.frames.get(floor);
        let kept = kept.map(|level| (level.frame.caller, level.lowered, level.frame_end));
        if let Some((image, lowered, frame_end)) = kept {
            self.set_program(image, lowered);
            self.host.frame_end = frame_end;
            self.see_pointers(machine);
        }
        self.frames.truncate(floor);
        result
    }

    /// A call of a helper by the operation at `at`.
    pub(crate) fn call_helper(
        &mut self,
        machine: &mut Machine,
        at: Target,
        helper: u16,
    ) -> Result<(), Stop> {
        let Some(helper) = self.lowered.helpers().get(usize::from(helper)).copied() else {
            return Err(self.fault(at, FaultKind::OutOfProgram(-1)).into());
        };
        let [_, r1, r2, r3, r4, r5, ..] = self.host.regs;
        let mut call = Call {
            machine,
            args: [r1, r2, r3, r4, r5],
            engine: &mut Engine { run: self, at },
        };
        let result = match helper.body {
            Some(body) => body(&mut call),
            None => helpers::call(helper.id, &mut call),
        };
        match result {
            Ok(r0) => {
                self.host.regs[0] = r0;
                if self.is_native && helper.changes_packet {
                    self.see_pointers(machine);
                }
                Ok(())
            }
            // What happened in a callback is told as it is, with its own place.
            Err(HelperProblem::Callback(fault)) => Err(fault.into()),
            Err(problem) => {
                let helper = helper.id;
                Err(self.fault(at, FaultKind::Helper { helper, problem }).into())
            }
        }
    }

    /// Counts an instruction.
    pub(super) fn count(&mut self, at: Target) -> Result<(), Stop> {
        if self.executed >= self.budget.0 {
            return Err(self.fault(at, FaultKind::Budget(self.budget.0)).into());
        }
        self.executed += 1;
        Ok(())
    }

    /// A fault at an operation.
    #[cold]
    pub(super) fn fault(&self, at: Target, kind: FaultKind) -> Box<Fault> {
        self.image.fault(self.lowered.pc(at), kind)
    }
}

/// Makes the bytes of a frame zero that lie between so many below its end and so many.
fn clear(bytes: &SharedBytes, from: u16, to: u16) {
    let end = limits::STACK_SIZE;
    let (from, to) = (
        end - usize::from(from).min(end),
        end - usize::from(to).min(end),
    );
    for at in (from..to).step_by(8) {
        // In bounds: a frame is that large.
        let _ = bytes.store(at, 8, 0);
    }
}

/// The run as a helper sees it.
struct Engine<'r, 'a> {
    run: &'r mut Run<'a>,
    at: Target,
}

impl Callbacks for Engine<'_, '_> {
    fn call_back(
        &mut self,
        machine: &mut Machine,
        function: u64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let run = &mut *self.run;
        let slot = run.image.function_at(function);
        let start = slot.and_then(|slot| u32::try_from(slot).ok()).map(Pc);
        let Some(function) = start.and_then(|start| run.lowered.function_at(start)) else {
            let kind = FaultKind::NoFunction(machine.pointer(function));
            return Err(run.fault(self.at, kind));
        };
        run.enter(machine, self.at, function, args)
    }
}
