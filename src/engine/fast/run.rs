//! The state of a run; its start, nested runs, helpers.

use std::ptr;
use std::sync::Arc;

use super::super::cells::Host;
use super::super::cells::Threaded;
use super::super::checked::{Budget, Finished};
use super::super::counting::Counting;
use super::super::image::Image;
use super::super::native::{EntryPoint, Native};
use super::super::plan::Plan;
use super::super::stack::{Frames, STRIDE};
use crate::isa::Reg;
use crate::lower::{Callee, KNOWN, KnownValues, Lowered, Target};
use crate::program::Program;
use crate::util::Pc;
use crate::vm::helpers::{self, Call, Callbacks};
use crate::vm::kfuncs;
use crate::vm::{Fault, FaultKind, HelperProblem, Machine, RanOn};

/// Why execution of operations stops.
pub(crate) type Stop = Box<Fault>;

/// Why execution of cells or machine code stops.
pub(crate) enum End {
    /// The function entered first has ended.
    Done,
    /// The run stops.
    Stop(Stop),
    /// The budget may not last until the next check: the loop over operations continues
    /// here.
    Slow(Target),
}

/// How many pointers of [`ContextUse`](crate::lower::ContextUse) a run holds.
pub(crate) const POINTERS: usize = 8;

/// A run, active or to be started again. Machine code has its address and reads its fields
/// (`jit/layout.rs`).
#[repr(C)]
pub(crate) struct Run<'a> {
    /// The first field, since the functions of cells get a pointer to it.
    pub host: Host,
    /// The instructions left when machine code last made, or was entered by, a call.
    pub left: i64,
    /// The host's stack pointer to restore when machine code stops and returns to where it
    /// was entered.
    pub unwind: u64,
    /// The difference that, added to a packet address, gives the host address; 0 without a
    /// packet.
    pub packet: u64,
    /// The host address of [`Pages::present_address`](crate::vm::memory::Pages) of the current
    /// program's arena.
    pub arena: u64,
    /// The host address of the [table of recently read kernel
    /// objects](crate::vm::memory::RecentBlocks).
    pub recent: u64,
    /// The current values of the first pointers of
    /// [`ContextUse`](crate::lower::ContextUse); 0 for missing ones.
    pub pointers: [u64; POINTERS],
    /// The results of helpers that are constant during a run, as far as its programs use
    /// them.
    pub known: KnownValues,
    /// The budget at the start.
    pub granted: i64,
    /// The machine while machine code or cells are executed.
    pub machine: *mut Machine,
    /// Why machine code or cells ended.
    pub end: Option<End>,
    pub(super) images: &'a [Arc<Image>],
    /// The program that the run starts with.
    entry: (&'a Image, &'a Lowered),
    /// The entry point of its machine code, if that is executed, and nothing is attached to the
    /// main program.
    entry_point: Option<EntryPoint>,
    /// The end of the frame before the first function is entered.
    pub(super) rest: u64,
    /// The end of the frame of the innermost main function, which an exception ends. A main
    /// function's tail calls keep the frame.
    pub(super) boundary: u64,
    /// Whether machine code counts instructions.
    pub counting: Counting,
    /// Whether nothing has to be read anew before the entry program starts.
    starts_plainly: bool,
    /// The current program; a tail call changes it.
    pub(super) image: &'a Image,
    /// Its operations.
    pub lowered: &'a Lowered,
    /// The operations as cells, if these are executed.
    pub(crate) code: Option<&'a Threaded>,
    pub(super) frames: &'a mut Frames,
    /// Where interpreted callers continue. Other callers (machine code, a helper, the run
    /// itself) know it themselves.
    pub(super) saved_callers: Vec<SavedCaller<'a>>,
    /// Whether the innermost function's frame escapes; used by the interpreters only.
    pub(super) frame_escapes: bool,
    /// Whether machine code is executed where a program has it.
    pub(super) is_native: bool,
    pub budget: Budget,
    pub executed: u64,
    pub(super) tail_calls: u32,
    /// The engine that a tail call switched to, if any.
    pub switched_to: Option<RanOn>,
    /// The value of r1 at the start.
    pub context_address: u64,
    /// How many callers are left when cells end.
    pub floor: usize,
}

/// Where a caller continues, and with what state.
pub(super) struct SavedCaller<'a> {
    pub image: &'a Image,
    pub lowered: &'a Lowered,
    pub return_to: Target,
    /// Its r6 to r9.
    pub saved: [u64; 4],
    /// Whether its frame escapes.
    pub frame_escapes: bool,
}

/// What to do after an operation.
pub(crate) enum Next {
    /// Continue with the next one.
    Follow,
    /// Continue at another one.
    Goto(Target),
    /// The function ends.
    Exit,
}

impl<'a> Run<'a> {
    /// Creates runs of a lowered program that may start on the machine's current event. The
    /// context and the table of deltas are host addresses.
    #[inline]
    pub(crate) fn new(
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
            counting,
        } = plan;
        let native = image.native(counting).filter(|_| is_native);
        // Without counts, operations that an interpreter executes must not end the run.
        let budget = match (native, counting) {
            (Some(_), Counting::Off) => Budget(u64::MAX),
            _ => budget,
        };
        let granted = i64::try_from(budget.0).unwrap_or(i64::MAX);
        let mut run = Self {
            host: Host {
                regs: [0; Reg::COUNT],
                frame_end: frames.rest(),
                context,
                deltas,
                left: 0,
                limit: 0,
            },
            left: granted,
            unwind: 0,
            packet: 0,
            arena: arena_pages(lowered),
            recent: machine.space.recent().host_address(),
            pointers: [0; POINTERS],
            known: [0; KNOWN],
            granted,
            machine: ptr::null_mut(),
            end: None,
            images,
            entry: (image, lowered),
            entry_point: native
                .filter(|_| image.attached_at(0).is_none())
                .map(|native| native.entry_point(0)),
            rest: frames.rest(),
            boundary: frames.rest() - STRIDE as u64,
            counting,
            starts_plainly: lowered.known().is_empty() && !lowered.reads_kernel(),
            image,
            lowered,
            code: match native {
                Some(_) => None,
                None => image.threaded(),
            },
            frames,
            saved_callers: Vec::new(),
            frame_escapes: false,
            is_native,
            budget,
            executed: 0,
            tail_calls: 0,
            switched_to: None,
            context_address,
            floor: 0,
        };
        run.set_limit();
        run.refresh_packet(machine);
        run.refresh_pointers(machine);
        run
    }

    /// Runs the program from start to end. It can be started again afterwards, on the same
    /// machine.
    #[inline]
    pub(crate) fn start(&mut self, machine: &mut Machine) -> Result<Finished, Box<Fault>> {
        if !self.starts_plainly {
            self.read_anew(machine);
        }
        let Some(entry_point) = self.entry_point else {
            return self.start_interpreted(machine);
        };
        let finished = self.start_native(machine, entry_point);
        // The result is made here, in registers: a `Result` that is copied stalls the processor,
        // which takes longer than the rest of an entry.
        if self.end.is_none() && self.tail_calls == 0 {
            return Ok(finished);
        }
        let result = self.stopped(finished.r0);
        self.clean_up(machine, result, finished.insns)
    }

    /// Reads what the entry program needs of the machine and may have changed.
    #[cold]
    fn read_anew(&mut self, machine: &mut Machine) {
        if !self.lowered.known().is_empty() {
            self.lowered.read_known(&mut machine.world, &mut self.known);
        }
        self.forget_freed(machine);
    }

    /// Runs the program without machine code, or what is attached to it.
    #[inline]
    fn start_interpreted(&mut self, machine: &mut Machine) -> Result<Finished, Box<Fault>> {
        self.host.frame_end = self.rest;
        self.executed = 0;
        let args = [self.context_address, 0, 0, 0, 0];
        let result = match self.image.attached_at(0) {
            None => self.function(machine, 0, 0, args),
            Some(_) => self.call_attached(machine, 0, 0, args),
        };
        let insns = self.counts().then_some(self.executed);
        match result {
            Ok(r0) if self.tail_calls == 0 => Ok(Finished { r0, insns }),
            result => self.clean_up(machine, result, insns),
        }
    }

    /// Whether the executed instructions are known.
    fn counts(&self) -> bool {
        self.counting == Counting::Exact || self.native().is_none()
    }

    /// Ends a run that switched programs or stopped in the middle.
    #[cold]
    fn clean_up(
        &mut self,
        machine: &mut Machine,
        result: Result<u64, Box<Fault>>,
        insns: Option<u64>,
    ) -> Result<Finished, Box<Fault>> {
        let thrown = result.as_ref().is_err_and(|stop| stop.thrown().is_some());
        let r0 = self.catch(machine, result, 0);
        let insns = match thrown {
            true => self.counts().then_some(self.executed),
            false => insns,
        };
        let result = r0.map(|r0| Finished { r0, insns });
        self.tail_calls = 0;
        self.set_program(machine, self.entry.0, self.entry.1);
        if result.is_err() {
            self.saved_callers.clear();
            self.frames.renew_all(machine);
        }
        result
    }

    /// The result of a program whose main function runs in the frame of the boundary, with that
    /// many saved callers before it. After an exception, that is the result of the program's
    /// exception callback on the cookie, or the cookie (`bpf_throw`, `kernel/bpf/helpers.c`).
    pub(super) fn catch(
        &mut self,
        machine: &mut Machine,
        result: Result<u64, Box<Fault>>,
        callers: usize,
    ) -> Result<u64, Box<Fault>> {
        let thrown = result.as_ref().err().and_then(|stop| stop.thrown());
        let Some(cookie) = thrown else {
            return result;
        };
        self.saved_callers.truncate(callers);
        // The main function is still active, and the only one.
        self.host.frame_end = self.boundary;
        self.frames.renew_callees(machine, self.depth());
        let callback = self.lowered.exceptions().and_then(|it| it.callback);
        let r0 = match callback {
            Some(callback) => self.function(machine, 0, callback, [cookie, 0, 0, 0, 0])?,
            None => cookie,
        };
        let main = self.lowered.functions().first();
        self.frame_escapes = main.is_some_and(|main| main.frame_escapes);
        self.leave(machine);
        Ok(r0)
    }

    /// Runs a function of the program in a new frame to its end; returns r0. The operation
    /// at `from` causes the call.
    // Inlined, so that the arguments get into the registers without an array in memory, which
    // would be written in other pieces than it is read: the processor waits for that.
    #[inline(always)]
    pub(super) fn function(
        &mut self,
        machine: &mut Machine,
        from: Target,
        function: u16,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let [_, r1, r2, r3, r4, r5, ..] = &mut self.host.regs;
        [*r1, *r2, *r3, *r4, *r5] = args;
        self.function_on(machine, from, function)
    }

    /// The same, on the arguments in r1 to r5.
    fn function_on(
        &mut self,
        machine: &mut Machine,
        from: Target,
        function: u16,
    ) -> Result<u64, Box<Fault>> {
        self.forget_freed(machine);
        if let Some(native) = self.native() {
            return self.execute_native(machine, native.entry_point(function));
        }
        let at = self.begin(from, function)?;
        let floor = self.saved_callers.len();
        self.thread(machine, at, floor)
    }

    /// Lets `f` run something else in the middle of a function, whose state is restored
    /// afterwards.
    pub(super) fn nested<T>(
        &mut self,
        machine: &mut Machine,
        f: impl FnOnce(&mut Self, &mut Machine) -> T,
    ) -> T {
        let [.., r6, r7, r8, r9, r10] = self.host.regs;
        let (program, frame_end) = ((self.image, self.lowered), self.host.frame_end);
        let (frame_escapes, unwind, boundary) = (self.frame_escapes, self.unwind, self.boundary);
        let result = f(self, machine);
        let [.., s6, s7, s8, s9, s10] = &mut self.host.regs;
        [*s6, *s7, *s8, *s9, *s10] = [r6, r7, r8, r9, r10];
        self.host.frame_end = frame_end;
        (self.frame_escapes, self.unwind, self.boundary) = (frame_escapes, unwind, boundary);
        self.set_program(machine, program.0, program.1);
        result
    }

    /// The machine code of the current program, if it is to be executed.
    pub(crate) fn native(&self) -> Option<&'a Native> {
        self.image.native(self.counting).filter(|_| self.is_native)
    }

    pub(super) fn set_program(
        &mut self,
        machine: &Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) {
        if !ptr::eq(self.image, image) {
            (self.image, self.lowered) = (image, lowered);
            self.code = match self.native() {
                Some(_) => None,
                None => image.threaded(),
            };
            self.arena = arena_pages(lowered);
            self.set_limit();
            self.refresh_pointers(machine);
            self.forget_freed(machine);
        }
    }

    /// Makes the program see which kernel objects were freed: before it runs, and after each
    /// call that may free one.
    #[inline]
    fn forget_freed(&self, machine: &Machine) {
        if self.lowered.reads_kernel() {
            machine.space.forget_freed();
        }
    }

    /// Calls a helper, or what is attached to a function, for the operation at `at`.
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

    /// The same with these arguments; returns r0.
    #[inline]
    pub(crate) fn helper(
        &mut self,
        machine: &mut Machine,
        at: Target,
        helper: u16,
        args: [u64; 5],
    ) -> Result<u64, Stop> {
        let lowered = self.lowered;
        let Some(helper) = lowered.helpers().get(usize::from(helper)) else {
            return Err(self.fault(at, FaultKind::OutOfProgram(-1)));
        };
        let mut call = Call {
            machine,
            args,
            engine: &mut Engine { run: self, at },
        };
        let result = match (helper.body, &helper.callee) {
            (Some(body), _) => body(&mut call),
            (None, Callee::Helper(id)) => helpers::call(*id, &mut call),
            (None, Callee::Kfunc(callee)) => kfuncs::call(callee, &mut call),
            (None, Callee::Attached(function)) => {
                let called = self.call_attached(machine, at, *function, args);
                called.map_err(HelperProblem::Callback)
            }
        };
        if helper.moves_pointers {
            self.refresh_pointers(machine);
        }
        self.forget_freed(machine);
        result.map_err(|problem| match problem {
            // A fault in a callback is reported with its own position.
            HelperProblem::Callback(fault) => fault,
            problem => self.fault(
                at,
                match &helper.callee {
                    Callee::Helper(helper) => {
                        let helper = *helper;
                        FaultKind::Helper { helper, problem }
                    }
                    Callee::Kfunc(callee) => {
                        let name = callee.name().to_string();
                        FaultKind::Kfunc { name, problem }
                    }
                    Callee::Attached(_) => FaultKind::Interrupt(problem.to_string()),
                },
            ),
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

/// The address of the bytes that say which pages of a program's arena are there.
fn arena_pages(lowered: &Lowered) -> u64 {
    let arena = lowered.arena();
    arena.map_or(0, |arena| arena.pages.present_address())
}

/// The interface of a run for helpers.
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
        run.call_attached(machine, at, function, args)
    }

    fn program(&self) -> Option<&Arc<Program>> {
        Some(self.run.image.program())
    }
}
