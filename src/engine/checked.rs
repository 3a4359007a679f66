//! The checked interpreter: frames, calls, tail calls, callbacks and the budget. The effect
//! of single instructions on registers and memory is in `operations`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::image::Image;
use super::stack::{Frame, Frames, MAX_FRAMES, Stack};
use super::uninit::Tracker;
use super::watch::{Step, Watch, WatchedFrame};
use crate::isa::{CallTarget, Insn, Reg};
use crate::lower::exception_callback;
use crate::program::Program;
use crate::spec::{helpers, limits};
use crate::util::{HelperId, Pc};
use crate::vm::helpers::{Call, Callbacks};
use crate::vm::kfuncs::{self, Callee};
use crate::vm::{Fault, FaultKind, HelperProblem, Machine};

/// The most instructions that a run may execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub u64);

impl Default for Budget {
    /// 2^28, about 268 million: a few seconds, and in practice enough for all verified
    /// programs.
    fn default() -> Self {
        Self(1 << 28)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Register r0.
    pub r0: u64,
    /// Instructions executed; none if they were not counted
    /// ([`Vm::set_counting`](crate::Vm::set_counting)).
    pub insns: Option<u64>,
}

/// The checked interpreter. It keeps its stack between runs.
#[derive(Debug, Default)]
pub struct Checked {
    pub(super) stack: Stack,
}

impl Checked {
    /// Creates an interpreter; its stack is allocated by the first run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `entry` with these values in r1 to r5; `images` are the possible targets of
    /// tail calls, by handle. Registers and stack are zero at the start.
    ///
    /// # Errors
    /// [`Fault`] when the program faults or exceeds its budget.
    pub fn run(
        &mut self,
        machine: &mut Machine,
        images: &[Arc<Image>],
        entry: &Image,
        args: [u64; 5],
        budget: Budget,
    ) -> Result<Finished, Box<Fault>> {
        let frames = self.frames(machine, entry)?;
        start(frames, machine, images, entry, args, budget, None)
    }

    /// Runs the function of `entry` that a register points to, as the kernel calls a
    /// timer's callback outside of any program.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and if the register points to no function of this program.
    pub fn call_back(
        &mut self,
        machine: &mut Machine,
        images: &[Arc<Image>],
        entry: &Image,
        function: u64,
        args: [u64; 5],
        budget: Budget,
    ) -> Result<Finished, Box<Fault>> {
        let Some(at) = entry.function_at(function) else {
            let nowhere = FaultKind::NoFunction(machine.pointer(function));
            return Err(entry.fault(Pc(0), nowhere));
        };
        let frames = self.frames(machine, entry)?;
        run_from(frames, machine, images, entry, (at, args), budget, None)
    }

    /// Runs like [`run`](Self::run), calling `watch` before each instruction.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_watched(
        &mut self,
        machine: &mut Machine,
        images: &[Arc<Image>],
        entry: &Image,
        args: [u64; 5],
        budget: Budget,
        watch: &mut dyn Watch,
    ) -> Result<Finished, Box<Fault>> {
        let frames = self.frames(machine, entry)?;
        start(frames, machine, images, entry, args, budget, Some(watch))
    }

    /// Removes its stack from the machine's memory.
    pub(crate) fn retire(self, machine: &mut Machine) {
        self.stack.remove(machine);
    }

    /// The frames in the machine that programs run on.
    pub(super) fn frames(
        &mut self,
        machine: &mut Machine,
        entry: &Image,
    ) -> Result<&mut Frames, Box<Fault>> {
        let frames = self.stack.frames(machine);
        frames.map_err(|full| entry.fault(Pc(0), full.into()))
    }
}

/// Runs a program on these frames.
pub(super) fn start<'a>(
    stack: &'a mut Frames,
    machine: &mut Machine,
    images: &'a [Arc<Image>],
    entry: &'a Image,
    args: [u64; 5],
    budget: Budget,
    watch: Option<&'a mut (dyn Watch + 'a)>,
) -> Result<Finished, Box<Fault>> {
    run_from(stack, machine, images, entry, (0, args), budget, watch)
}

/// Runs the function at a slot, with these values in r1 to r5.
fn run_from<'a>(
    stack: &'a mut Frames,
    machine: &mut Machine,
    images: &'a [Arc<Image>],
    entry: &'a Image,
    (at, args): (i64, [u64; 5]),
    budget: Budget,
    watch: Option<&'a mut (dyn Watch + 'a)>,
) -> Result<Finished, Box<Fault>> {
    if !machine.finds_uninit() {
        return Run::new(stack, images, entry, budget, watch).finish(machine, at, args);
    }
    let mut tracker = Tracker::new(watch);
    let run = Run::new(stack, images, entry, budget, Some(&mut tracker));
    let finished = run.finish(machine, at, args);
    machine.note_leaks(tracker.finish());
    finished
}

/// The state of a run.
pub(super) struct Run<'a> {
    pub(super) watch: Option<&'a mut (dyn Watch + 'a)>,
    /// Whether there is a watcher, or the current program counts what is executed.
    pub(super) is_observed: bool,
    pub(super) images: &'a [Arc<Image>],
    /// The current program; a tail call changes it.
    pub(super) image: &'a Image,
    pub(super) stack: &'a mut Frames,
    pub(super) regs: [u64; Reg::COUNT],
    pub(super) frames: SmallVec<[Frame<'a>; limits::MAX_CALL_FRAMES]>,
    /// The number of frames outside of these, of a run that continues here.
    pub(super) outer_frames: usize,
    pub(super) budget: Budget,
    pub(super) executed: u64,
    pub(super) tail_calls: u32,
    /// The number of active callbacks, including the function entered first.
    pub(super) callbacks: usize,
}

/// The most nested callbacks: each takes a few kilobytes of the host's stack. No program
/// that the verifier accepts comes near.
const MAX_CALLBACKS: usize = 64;

/// What to do after an instruction.
pub(super) enum Next {
    /// Continue with the next one.
    Follow,
    /// Continue at a slot.
    Goto(i64),
    /// The function ends.
    Exit,
}

impl<'a> Run<'a> {
    /// Creates a run on these frames.
    fn new(
        stack: &'a mut Frames,
        images: &'a [Arc<Image>],
        image: &'a Image,
        budget: Budget,
        watch: Option<&'a mut (dyn Watch + 'a)>,
    ) -> Self {
        Self {
            is_observed: watch.is_some() || image.counts().is_some(),
            watch,
            images,
            image,
            stack,
            regs: [0; Reg::COUNT],
            frames: SmallVec::new(),
            outer_frames: 0,
            budget,
            executed: 0,
            tail_calls: 0,
            callbacks: 0,
        }
    }

    /// Runs the function at `at` to its end.
    fn finish(
        mut self,
        machine: &mut Machine,
        at: i64,
        args: [u64; 5],
    ) -> Result<Finished, Box<Fault>> {
        let result = self.enter(machine, 0, at, args);
        if result.is_err() {
            self.stack.renew_all(machine);
        }
        let insns = Some(self.executed);
        result.map(|r0| Finished { r0, insns })
    }
}

impl<'a> Run<'a> {
    /// Runs the function at `at` in a new frame to its end; returns r0.
    fn enter(
        &mut self,
        machine: &mut Machine,
        from: i64,
        at: i64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        if self.callbacks >= MAX_CALLBACKS {
            return Err(self.fault(from, FaultKind::Depth(MAX_CALLBACKS)));
        }
        let depth = self.frames.len();
        let room = self.stack.reach(machine, self.depth());
        room.map_err(|full| self.fault(from, full.into()))?;
        for (reg, arg) in Reg::ARGUMENTS.into_iter().zip(args) {
            self.set(reg, arg);
        }
        let frame = Frame::new(at, from, from, self.image, &self.regs);
        let at = self.push_callee(machine, frame)?;
        self.callbacks += 1;
        let r0 = self.execute(machine, at, depth)?;
        self.callbacks -= 1;
        Ok(r0)
    }

    /// Executes from `at` on until only `floor` frames are left.
    pub(super) fn execute(
        &mut self,
        machine: &mut Machine,
        at: i64,
        floor: usize,
    ) -> Result<u64, Box<Fault>> {
        let mut at = at;
        loop {
            let Some(slot) = self.image.insn(at) else {
                return Err(self.fault(at, FaultKind::OutOfProgram(at)));
            };
            let insn = match slot {
                Ok(insn) => insn,
                Err(error) => return Err(self.fault(at, error.into())),
            };
            if self.executed >= self.budget.0 {
                return Err(self.fault(at, FaultKind::Budget(self.budget.0)));
            }
            self.executed += 1;
            if self.is_observed {
                self.observe(machine, at, insn)?;
            }
            let next = match insn {
                Insn::Call(target) => self.call(machine, at, insn, target)?,
                Insn::CallReg { target } => self.call_register(machine, at, self.reg(target))?,
                Insn::MayGoto { off } => self.may_goto(at, off),
                Insn::Exit => Next::Exit,
                insn => match self.operate(machine, at, insn) {
                    Ok(next) => next,
                    Err(kind) => return Err(self.fault(at, kind)),
                },
            };
            at = match next {
                Next::Follow => at + i64::from(insn.slots()),
                Next::Goto(to) => to,
                Next::Exit => {
                    self.leave_traced(machine)?;
                    match self.pop_frame(machine) {
                        Some(back) if self.frames.len() > floor => back,
                        _ => return Ok(self.reg(Reg::R0)),
                    }
                }
            };
        }
    }

    /// Calls the watcher and counts the instruction.
    fn observe(&mut self, machine: &mut Machine, at: i64, insn: Insn) -> Result<(), Box<Fault>> {
        if self.watch.is_some() {
            self.show(machine, at)?;
        }
        if let Some(counts) = self.image.counts() {
            counts.execute(pc(at));
            if self.takes(insn) {
                counts.take(pc(at));
            }
        }
        Ok(())
    }

    /// Whether an instruction is a conditional jump that will be taken.
    fn takes(&self, insn: Insn) -> bool {
        match insn {
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                ..
            } => op.eval(width, self.reg(dst), self.operand(src)),
            Insn::MayGoto { .. } => self.frames.last().is_none_or(|frame| frame.loops_left == 0),
            _ => false,
        }
    }

    /// Makes another program the current one.
    pub(super) fn turn_to(&mut self, image: &'a Image) {
        self.image = image;
        self.is_observed = self.watch.is_some() || image.counts().is_some();
    }

    /// Calls the watcher, if any.
    fn show(&mut self, machine: &mut Machine, at: i64) -> Result<(), Box<Fault>> {
        let mut regs = self.regs;
        let mut frames: SmallVec<[_; limits::MAX_CALL_FRAMES]> = SmallVec::new();
        let mut outer = None;
        for (number, frame) in self.frames.iter().enumerate().rev() {
            if !std::ptr::eq(frame.caller, self.image) {
                outer.get_or_insert(number);
            }
            let Some(stack) = self.stack.first_byte(number) else {
                return Ok(());
            };
            frames.push(WatchedFrame {
                start: pc(frame.start),
                callsite: (number > 0).then(|| pc(frame.from)),
                is_callback: number > 0 && frame.return_to == frame.from,
                stack,
                regs,
            });
            // The registers that the caller gets back.
            let [r6, r7, r8, r9] = frame.saved;
            regs = [0, 0, 0, 0, 0, 0, r6, r7, r8, r9, frame.frame_pointer];
        }
        frames.reverse();
        if let Some(watch) = &mut self.watch {
            watch.before(&Step {
                image: self.image,
                machine,
                pc: pc(at),
                frames: &frames,
                outer: outer.unwrap_or_default(),
            });
            watch.interrupt(machine, self.image, pc(at))?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        machine: &mut Machine,
        at: i64,
        insn: Insn,
        target: CallTarget,
    ) -> Result<Next, Box<Fault>> {
        match target {
            CallTarget::Subprogram { .. } => {
                let to = insn.subprogram_target(pc(at)).unwrap_or(-1);
                self.call_subprogram(machine, at, to)
            }
            CallTarget::Helper(helpers::id::tail_call) => self.tail_call(machine, at),
            CallTarget::Helper(helper) => self.call_helper(machine, at, helper),
            CallTarget::Kfunc { id, fd_index } => match self.image.kfunc(id, fd_index) {
                Some(callee) => self.call_kfunc(machine, at, callee),
                None => Err(self.fault(at, FaultKind::UnknownKfunc(id))),
            },
        }
    }

    /// `callx`: the register holds a function's address or, as in other runtimes, the
    /// number of a helper.
    fn call_register(
        &mut self,
        machine: &mut Machine,
        at: i64,
        register: u64,
    ) -> Result<Next, Box<Fault>> {
        let helper = u32::try_from(register).map(HelperId).ok();
        if let Some(helper) = helper.filter(|id| helpers::helper(*id).is_some()) {
            return self.call_helper(machine, at, helper);
        }
        let to = self.function(machine, at, register)?;
        self.call_subprogram(machine, at, to)
    }

    fn call_subprogram(
        &mut self,
        machine: &mut Machine,
        from: i64,
        to: i64,
    ) -> Result<Next, Box<Fault>> {
        let mut frame = Frame::new(to, from, from + 1, self.image, &self.regs);
        frame.chain += self.frames.last().map_or(0, |caller| caller.chain);
        if frame.chain > limits::MAX_CALL_FRAMES {
            return Err(self.fault(from, FaultKind::Depth(limits::MAX_CALL_FRAMES)));
        }
        let at = self.push_callee(machine, frame)?;
        Ok(Next::Goto(at))
    }

    pub(super) fn push_frame(
        &mut self,
        machine: &mut Machine,
        frame: Frame<'a>,
    ) -> Result<(), Box<Fault>> {
        let depth = self.depth();
        if depth >= MAX_FRAMES {
            return Err(self.fault(frame.from, FaultKind::Depth(MAX_FRAMES)));
        }
        let start = frame.start;
        self.frames.push(frame);
        self.stack.clear(depth);
        self.begin(machine, start);
        Ok(())
    }

    /// The number of active functions.
    fn depth(&self) -> usize {
        self.outer_frames + self.frames.len()
    }

    /// Prepares the innermost frame for the function at a slot.
    pub(super) fn begin(&mut self, machine: &mut Machine, at: i64) {
        let depth = self.depth().saturating_sub(1);
        if let Some(name) = self.image.frame_name(at) {
            self.stack.name(machine, depth, name);
        }
        self.set(Reg::FP, self.stack.number(depth));
    }

    /// Restores the caller's registers; returns where it continues.
    fn pop_frame(&mut self, machine: &mut Machine) -> Option<i64> {
        let frame = self.frames.pop()?;
        if frame.frame_escapes {
            self.stack.renew(machine, self.depth());
        }
        frame.restore(&mut self.regs);
        // A tail call may have switched to another program.
        self.turn_to(frame.caller);
        Some(frame.return_to)
    }

    /// Falls through until the frame's loop budget is used up.
    fn may_goto(&mut self, at: i64, off: i16) -> Next {
        match self.frames.last_mut() {
            Some(frame) if frame.loops_left > 0 => {
                frame.loops_left -= 1;
                Next::Follow
            }
            _ => Next::Goto(at + 1 + i64::from(off)),
        }
    }

    /// `bpf_tail_call(ctx, map, index)`: another program replaces the function. If there is
    /// none, or after too many tail calls, execution continues as if nothing had happened.
    fn tail_call(&mut self, machine: &mut Machine, at: i64) -> Result<Next, Box<Fault>> {
        let target = machine.tail_call_target(self.reg(Reg::R2), self.reg(Reg::R3));
        let image = target.and_then(|program| self.images.get(program.index()));
        match image {
            Some(image) if self.tail_calls < limits::MAX_TAIL_CALLS => {
                self.tail_calls += 1;
                let room = self.stack.reach(machine, self.depth().saturating_sub(1));
                room.map_err(|full| self.fault(at, full.into()))?;
                self.turn_to(image);
                self.leave_to(machine);
                Ok(Next::Goto(0))
            }
            _ => Ok(Next::Follow),
        }
    }

    /// Hands the innermost frame with its contents over to the current program; of the
    /// registers only r1, the context, stays.
    pub(super) fn leave_to(&mut self, machine: &mut Machine) {
        let image = self.image;
        let last = self.frames.last_mut();
        if last.is_some_and(|frame| frame.leave_to(image)) {
            self.stack.renew(machine, self.depth().saturating_sub(1));
        }
        let context = self.reg(Reg::R1);
        self.regs = [0; Reg::COUNT];
        self.set(Reg::R1, context);
        self.begin(machine, 0);
    }

    fn call_helper(
        &mut self,
        machine: &mut Machine,
        at: i64,
        helper: HelperId,
    ) -> Result<Next, Box<Fault>> {
        let access = self.image.program().core_access(pc(at));
        if let Some(access) = access.filter(|access| access.poisoned) {
            return Err(self.fault(at, FaultKind::Poisoned(access.path.clone())));
        }
        let mut call = Call {
            machine,
            args: Reg::ARGUMENTS.map(|reg| self.reg(reg)),
            engine: &mut Engine { run: self, at },
        };
        match crate::vm::helpers::call(helper, &mut call) {
            Ok(r0) => {
                self.set(Reg::R0, r0);
                Ok(Next::Follow)
            }
            // A fault in a callback is reported with its own position.
            Err(HelperProblem::Callback(fault)) => Err(fault),
            Err(problem) => Err(self.fault(at, FaultKind::Helper { helper, problem })),
        }
    }

    fn call_kfunc(
        &mut self,
        machine: &mut Machine,
        at: i64,
        callee: &Callee,
    ) -> Result<Next, Box<Fault>> {
        let mut call = Call {
            machine,
            args: Reg::ARGUMENTS.map(|reg| self.reg(reg)),
            engine: &mut Engine { run: self, at },
        };
        match kfuncs::call(callee, &mut call) {
            Ok(r0) => {
                self.set(Reg::R0, r0);
                Ok(Next::Follow)
            }
            // A fault in a callback is reported with its own position.
            Err(HelperProblem::Callback(fault)) => Err(fault),
            Err(HelperProblem::Thrown(cookie)) => self.throw(machine, at, cookie),
            Err(problem) => {
                let name = callee.name().to_string();
                Err(self.fault(at, FaultKind::Kfunc { name, problem }))
            }
        }
    }

    /// `bpf_throw`: the innermost main function ends with the result of its exception
    /// callback on the cookie, or the cookie itself (`kernel/bpf/helpers.c`). All functions
    /// above it end without executing further instructions.
    fn throw(&mut self, machine: &mut Machine, at: i64, cookie: u64) -> Result<Next, Box<Fault>> {
        let main = self.frames.iter().rposition(|frame| frame.start == 0);
        let above = main.map_or(0, |main| main + 1);
        let mut functions = self.frames.iter().skip(above);
        if functions.any(|frame| frame.return_to == frame.from) {
            return Err(self.fault(at, FaultKind::ThrownInCallback));
        }
        for frame in self.frames.iter_mut().skip(above) {
            frame.frame_escapes = false; // renewed below, with the others
        }
        while self.frames.len() > above {
            self.pop_frame(machine);
        }
        self.stack.renew_callees(machine, self.depth());
        let r0 = match exception_callback(self.image.program()) {
            Some(Pc(callback)) => self.enter(machine, at, callback.into(), [cookie, 0, 0, 0, 0])?,
            None => cookie,
        };
        self.set(Reg::R0, r0);
        Ok(Next::Exit)
    }

    /// The slot of the function that a register points to.
    fn function(&self, machine: &Machine, at: i64, register: u64) -> Result<i64, Box<Fault>> {
        let found = self.image.function_at(register);
        found.ok_or_else(|| self.fault(at, FaultKind::NoFunction(machine.pointer(register))))
    }

    /// A register's value.
    pub(super) const fn reg(&self, reg: Reg) -> u64 {
        self.regs[reg.number() as usize]
    }

    /// Sets a register.
    pub(super) const fn set(&mut self, reg: Reg, value: u64) {
        self.regs[reg.number() as usize] = value;
    }

    pub(super) fn fault(&self, at: i64, kind: FaultKind) -> Box<Fault> {
        self.image.fault(pc(at), kind)
    }
}

/// The slot as a position; 0 for a slot outside of the program, which only a fault names.
pub(super) fn pc(at: i64) -> Pc {
    Pc(u32::try_from(at).unwrap_or_default())
}

/// The interface of a run for helpers.
struct Engine<'r, 'a> {
    run: &'r mut Run<'a>,
    at: i64,
}

impl Callbacks for Engine<'_, '_> {
    fn call_back(
        &mut self,
        machine: &mut Machine,
        function: u64,
        args: [u64; 5],
    ) -> Result<u64, Box<Fault>> {
        let to = self.run.function(machine, self.at, function)?;
        self.run.enter(machine, self.at, to, args)
    }

    fn program(&self) -> Option<&Arc<Program>> {
        Some(self.run.image.program())
    }
}
