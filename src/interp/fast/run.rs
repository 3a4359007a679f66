//! A run under way: how it starts, what it runs aside, helpers.

use std::ptr;
use std::sync::Arc;

use super::super::checked::{Budget, Finished};
use super::super::image::Image;
use super::super::native::{Native, Way};
use super::super::plan::Plan;
use super::super::stack::{Frames, MAX_FRAMES};
use super::threaded::cell::Host;
use super::threaded::code::Threaded;
use crate::isa::Reg;
use crate::lower::{KNOWN, KnownValues, Lowered, Target};
use crate::util::Pc;
use crate::vm::helpers::{self, Call, Callbacks};
use crate::vm::{Fault, FaultKind, HelperProblem, Machine, RanOn};

/// Why operations stop being executed.
pub(crate) type Stop = Box<Fault>;

/// Why cells or machine code stop being executed.
pub(crate) enum End {
    /// The function ended that was entered first.
    Done,
    /// The run stops.
    Stop(Stop),
    /// The budget may not last until the next look at it: the loop over operations goes
    /// on here.
    Slow(Target),
}

/// So many of the pointers of [`ContextUse`](crate::lower::ContextUse) are at hand.
pub(crate) const POINTERS: usize = 8;

/// A run, under way or to be started again. Machine code has its address, and finds in it
/// what it needs (`jit/layout.rs`).
#[repr(C)]
pub(crate) struct Run<'a> {
    /// First, for the functions of cells, which get a pointer to it.
    pub host: Host,
    /// How many instructions were left when machine code last called or was called.
    pub left: i64,
    /// What the host's stack pointer is to be for machine code that stops, which then
    /// returns to where it was entered.
    pub unwind: u64,
    /// What added to an address in the packet gives the host address; 0 without a packet.
    pub packet: u64,
    /// The first of the pointers of [`ContextUse`](crate::lower::ContextUse) as they are
    /// at the moment; 0 where there is none.
    pub pointers: [u64; POINTERS],
    /// What helpers return that stay the same for a run, as far as its programs use it.
    pub known: KnownValues,
    /// How many instructions the budget had at the start.
    pub granted: i64,
    /// The machine while machine code or cells are executed.
    pub machine: *mut Machine,
    /// Why they ended.
    pub end: Option<End>,
    pub(super) images: &'a [Arc<Image>],
    /// The program that the run starts with.
    entry: (&'a Image, &'a Lowered),
    /// The way into its machine code, if that is what is executed.
    way: Option<Way>,
    /// The end of the frame before the first function is entered.
    rest: u64,
    /// The program that runs now; a tail call changes it.
    pub(super) image: &'a Image,
    /// Its operations.
    pub lowered: &'a Lowered,
    /// The operations as cells, where these are what is executed.
    pub(super) code: Option<&'a Threaded>,
    pub(super) frames: &'a mut Frames,
    /// How the callers go on that the interpreters have. Whoever has none (machine code,
    /// a helper, the run itself) goes on by itself.
    pub(super) levels: Vec<Level<'a>>,
    /// Whether the innermost function lends its frame; only the interpreters ask.
    pub(super) lends: bool,
    /// Whether machine code is what is executed where a program has it.
    pub(super) is_native: bool,
    pub budget: Budget,
    pub executed: u64,
    pub(super) tail_calls: u32,
    /// Another engine that a tail call ever led over to.
    pub led_to: Option<RanOn>,
    /// What r1 holds at the start.
    pub context_address: u64,
    /// How many callers are to be left when cells end.
    pub floor: usize,
}

/// How a caller goes on.
pub(super) struct Level<'a> {
    pub image: &'a Image,
    pub lowered: &'a Lowered,
    pub return_to: Target,
    /// Its r6 to r9.
    pub saved: [u64; 4],
    /// Whether it lends its frame.
    pub lends: bool,
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
    /// Runs of a lowered program that may start on the machine's current event. The
    /// context and the table of deltas are host addresses.
    #[inline]
    pub(in crate::interp) fn new(
        frames: &'a mut Frames,
        plan: Plan<'a>,
        lowered: &'a Lowered,
        (context, deltas): (u64, u64),
        is_native: bool,
        machine: &Machine,
    ) -> Self {
        let Plan {
            images,
            entry: image,
            context: context_address,
            budget,
        } = plan;
        let mut run = Self {
            host: Host {
                regs: [0; Reg::COUNT],
                frame_end: frames.rest(),
                context,
                deltas,
                base: 0,
                limit: 0,
            },
            left: 0,
            unwind: 0,
            packet: 0,
            pointers: [0; POINTERS],
            known: [0; KNOWN],
            granted: i64::try_from(budget.0).unwrap_or(i64::MAX),
            machine: ptr::null_mut(),
            end: None,
            images,
            entry: (image, lowered),
            way: image.native().filter(|_| is_native).map(|n| n.way_into(0)),
            rest: frames.rest(),
            image,
            lowered,
            code: image.threaded(),
            frames,
            levels: Vec::new(),
            lends: false,
            is_native,
            budget,
            executed: 0,
            tail_calls: 0,
            led_to: None,
            context_address,
            floor: 0,
        };
        run.set_limit();
        run.see_packet(machine);
        run.see_pointers(machine);
        run
    }

    /// Runs it from the start to its end. It can be started again then; the machine is
    /// the same each time.
    #[inline]
    pub(crate) fn start(&mut self, machine: &mut Machine) -> Result<Finished, Box<Fault>> {
        self.tail_calls = 0;
        self.host.frame_end = self.rest;
        self.host.regs[1] = self.context_address;
        if !self.lowered.known().is_empty() {
            self.lowered.read_known(&mut machine.world, &mut self.known);
        }
        self.executed = 0;
        let result = match self.way {
            Some(way) => self.execute_native(machine, way),
            None => self.function(machine, 0, 0, [self.context_address, 0, 0, 0, 0]),
        };
        if self.tail_calls != 0 || result.is_err() {
            self.clean_up(machine, result.is_err());
        }
        result.map(|r0| Finished {
            r0,
            insns: self.executed,
        })
    }

    /// After a run that was led away, or stopped in the middle.
    #[cold]
    fn clean_up(&mut self, machine: &mut Machine, is_stopped: bool) {
        self.set_program(machine, self.entry.0, self.entry.1);
        if is_stopped {
            self.levels.clear();
            self.frames.renew_all(machine);
        }
    }

    /// Runs a function of the program in a new frame to its end; its r0. The operation
    /// at `from` is what asks for it.
    pub(super) fn function(
        &mut self,
        machine: &mut Machine,
        from: Target,
        function: u16,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let [_, r1, r2, r3, r4, r5, ..] = &mut self.host.regs;
        [*r1, *r2, *r3, *r4, *r5] = args;
        if let Some(native) = self.native() {
            return self.execute_native(machine, native.way_into(function));
        }
        let at = self.begin(from, function)?;
        let floor = self.levels.len();
        self.thread(machine, at, floor)
    }

    /// Lets `f` run something else in the middle of a function, which finds everything
    /// as it left it.
    pub(super) fn aside<T>(
        &mut self,
        machine: &mut Machine,
        f: impl FnOnce(&mut Self, &mut Machine) -> T,
    ) -> T {
        let [.., r6, r7, r8, r9, r10] = self.host.regs;
        let (program, frame_end) = ((self.image, self.lowered), self.host.frame_end);
        let (lends, unwind) = (self.lends, self.unwind);
        let result = f(self, machine);
        let [.., s6, s7, s8, s9, s10] = &mut self.host.regs;
        [*s6, *s7, *s8, *s9, *s10] = [r6, r7, r8, r9, r10];
        self.host.frame_end = frame_end;
        (self.lends, self.unwind) = (lends, unwind);
        self.set_program(machine, program.0, program.1);
        result
    }

    /// The machine code of the program that runs now, if it is to be executed.
    pub(crate) fn native(&self) -> Option<&'a Native> {
        self.image.native().filter(|_| self.is_native)
    }

    pub(super) fn set_program(
        &mut self,
        machine: &Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) {
        if !ptr::eq(self.image, image) {
            (self.image, self.lowered) = (image, lowered);
            self.code = image.threaded();
            self.set_limit();
            self.see_pointers(machine);
        }
    }

    /// A call of a helper by the operation at `at`.
    pub(crate) fn call_helper(
        &mut self,
        machine: &mut Machine,
        at: Target,
        helper: u16,
    ) -> Result<(), Stop> {
        let [_, r1, r2, r3, r4, r5, ..] = self.host.regs;
        self.host.regs[0] = self.helper(machine, at, helper, [r1, r2, r3, r4, r5])?;
        Ok(())
    }

    /// The same with these arguments; its r0.
    #[inline]
    pub(crate) fn helper(
        &mut self,
        machine: &mut Machine,
        at: Target,
        helper: u16,
        args: [u64; 5],
    ) -> Result<u64, Stop> {
        let Some(helper) = self.lowered.helpers().get(usize::from(helper)).copied() else {
            return Err(self.fault(at, FaultKind::OutOfProgram(-1)));
        };
        let mut call = Call {
            machine,
            args,
            engine: &mut Engine { run: self, at },
        };
        let result = match helper.body {
            Some(body) => body(&mut call),
            None => helpers::call(helper.id, &mut call),
        };
        if self.is_native && helper.moves_pointers {
            self.see_pointers(machine);
        }
        result.map_err(|problem| match problem {
            // What happened in a callback is told as it is, with its own place.
            HelperProblem::Callback(fault) => fault,
            problem => {
                let helper = helper.id;
                self.fault(at, FaultKind::Helper { helper, problem })
            }
        })
    }

    /// Counts an instruction.
    pub(super) fn count(&mut self, at: Target) -> Result<(), Stop> {
        if self.executed >= self.budget.0 {
            return Err(self.fault(at, FaultKind::Budget(self.budget.0)));
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
        let (run, at) = (&mut *self.run, self.at);
        let slot = run.image.function_at(function);
        let start = slot.and_then(|slot| u32::try_from(slot).ok()).map(Pc);
        let Some(function) = start.and_then(|start| run.lowered.function_at(start)) else {
            let kind = FaultKind::NoFunction(machine.pointer(function));
            return Err(run.fault(at, kind));
        };
        let depth = run.depth();
        let room = run.frames.reach(machine, depth);
        room.map_err(|full| run.fault(at, full.into()))?;
        if depth >= MAX_FRAMES {
            return Err(run.fault(at, FaultKind::Depth(MAX_FRAMES)));
        }
        run.aside(machine, |run, machine| {
            run.function(machine, at, function, args)
        })
    }
}
