//! The checked interpreter: frames, calls, tail calls, callbacks and the budget.
//! What a single instruction does to registers and memory stands in `operations`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::exception;
use super::image::Image;
use super::stack::{Frame, Frames, MAX_FRAMES, Stack};
use super::watch::{Step, Watch, WatchedFrame};
use crate::isa::{CallTarget, Insn, Reg};
use crate::program::Program;
use crate::spec::{helpers, limits};
use crate::util::{HelperId, Pc};
use crate::vm::helpers::{Call, Callbacks};
use crate::vm::kfuncs::{self, Callee};
use crate::vm::{Fault, FaultKind, HelperProblem, Machine};

/// How many instructions a run may execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub u64);

impl Default for Budget {
    /// Enough for whatever a verifier lets pass in practice, a few seconds' worth:
    /// 2^28, about 268 million.
    fn default() -> Self {
        Self(1 << 28)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Register r0.
    pub r0: u64,
    /// Instructions executed.
    pub insns: u64,
}

/// The checked interpreter. It keeps its stack from run to run.
#[derive(Debug, Default)]
pub struct Checked {
    pub(super) stack: Stack,
}

impl Checked {
    /// An interpreter without a stack yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `entry` with these values in r1 to r5; `images` are the programs that
    /// tail calls reach, by handle. Registers and stack are zero at the start.
    ///
    /// # Errors
    /// [`Fault`] when the program does what it must not, or outlasts its budget.
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

    /// Runs the function of `entry` that a register points to, as the kernel calls one
    /// back when no program runs: a timer's.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and where that is no function of this program.
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
        let run = Run::new(frames, images, entry, budget, None);
        run.finish(machine, at, args)
    }

    /// The same with someone who watches.
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

    /// Takes its stack out of the machine's memory.
    pub(crate) fn retire(self, machine: &mut Machine) {
        self.stack.remove(machine);
    }

    /// The frames of the machine that programs are run on.
    pub(super) fn frames(
        &mut self,
        machine: &mut Machine,
        entry: &Image,
    ) -> Result<&mut Frames, Box<Fault>> {
        let frames = self.stack.frames(machine);
        frames.map_err(|full| entry.fault(Pc(0), full.into()))
    }
}

/// Runs a program on these frames of the machine.
pub(super) fn start<'a>(
    stack: &'a mut Frames,
    machine: &mut Machine,
    images: &'a [Arc<Image>],
    entry: &'a Image,
    args: [u64; 5],
    budget: Budget,
    watch: Option<&'a mut (dyn Watch + 'a)>,
) -> Result<Finished, Box<Fault>> {
    Run::new(stack, images, entry, budget, watch).finish(machine, 0, args)
}

/// A run under way.
pub(super) struct Run<'a> {
    pub(super) watch: Option<&'a mut (dyn Watch + 'a)>,
    pub(super) images: &'a [Arc<Image>],
    /// The program that runs now; a tail call changes it.
    pub(super) image: &'a Image,
    pub(super) stack: &'a mut Frames,
    pub(super) regs: [u64; Reg::COUNT],
    pub(super) frames: SmallVec<[Frame<'a>; limits::MAX_CALL_FRAMES]>,
    /// How many frames are around these: those of a run that goes on here.
    pub(super) around: usize,
    pub(super) budget: Budget,
    pub(super) executed: u64,
    pub(super) tail_calls: u32,
    /// How many callbacks are under way, the function that was entered first included.
    pub(super) callbacks: usize,
}

/// Callbacks that may be under way inside one another: each takes a few kilobytes of the
/// host's stack. The verifier accepts no program that comes near.
const MAX_CALLBACKS: usize = 64;

/// What to do after an instruction.
pub(super) enum Next {
    /// Go on with the next one.
    Follow,
    /// Go on at a slot.
    Goto(i64),
    /// The function ends.
    Exit,
}

impl<'a> Run<'a> {
    /// A run on these frames, before its first instruction.
    fn new(
        stack: &'a mut Frames,
        images: &'a [Arc<Image>],
        image: &'a Image,
        budget: Budget,
        watch: Option<&'a mut (dyn Watch + 'a)>,
    ) -> Self {
        Self {
            watch,
            images,
            image,
            stack,
            regs: [0; Reg::COUNT],
            frames: SmallVec::new(),
            around: 0,
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
        let insns = self.executed;
        result.map(|r0| Finished { r0, insns })
    }
}

impl<'a> Run<'a> {
    /// Runs the function at `at` in a new frame to its end; its r0.
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
        self.push_frame(machine, Frame::new(at, from, from, self.image, &self.regs))?;
        for (reg, arg) in Reg::ARGUMENTS.into_iter().zip(args) {
            self.set(reg, arg);
        }
        self.callbacks += 1;
        let r0 = self.execute(machine, at, depth)?;
        self.callbacks -= 1;
        Ok(r0)
    }

    /// Goes on at `at` until the frames are down to `floor`.
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
            if self.watch.is_some() {
                self.show(machine, at)?;
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
                Next::Exit => match self.pop_frame(machine) {
                    Some(back) if self.frames.len() > floor => back,
                    _ => return Ok(self.reg(Reg::R0)),
                },
            };
        }
    }

    /// Shows the run to whoever watches it.
    fn show(&mut self, machine: &mut Machine, at: i64) -> Result<(), Box<Fault>> {
        let mut regs = self.regs;
        let mut frames: SmallVec<[_; limits::MAX_CALL_FRAMES]> = SmallVec::new();
        for (number, frame) in self.frames.iter().enumerate().rev() {
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
            // What the caller gets back.
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

    /// `callx`: the register holds a function's address or, as other runtimes have
    /// it, the number of a helper.
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
        self.push_frame(machine, frame)?;
        Ok(Next::Goto(to))
    }

    fn push_frame(&mut self, machine: &mut Machine, frame: Frame<'a>) -> Result<(), Box<Fault>> {
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

    /// How many functions are under way.
    fn depth(&self) -> usize {
        self.around + self.frames.len()
    }

    /// Makes the innermost frame ready for the function at a slot.
    fn begin(&mut self, machine: &mut Machine, at: i64) {
        let depth = self.depth().saturating_sub(1);
        self.stack.name(machine, depth, &self.image.frame_name(at));
        self.set(Reg::FP, self.stack.number(depth));
    }

    /// Gives the caller its registers back; where it goes on.
    fn pop_frame(&mut self, machine: &mut Machine) -> Option<i64> {
        let frame = self.frames.pop()?;
        if frame.lends {
            self.stack.renew(machine, self.depth());
        }
        frame.restore(&mut self.regs);
        // A tail call may have led to another program.
        self.image = frame.caller;
        Some(frame.return_to)
    }

    /// Falls through until the frame's budget of loops is used up.
    fn may_goto(&mut self, at: i64, off: i16) -> Next {
        match self.frames.last_mut() {
            Some(frame) if frame.loops_left > 0 => {
                frame.loops_left -= 1;
                Next::Follow
            }
            _ => Next::Goto(at + 1 + i64::from(off)),
        }
    }

    /// `bpf_tail_call(ctx, map, index)`: the function ends, and another program begins
    /// in its place, or, if there is none or too many were before it, it goes on as if
    /// nothing had happened.
    fn tail_call(&mut self, machine: &mut Machine, at: i64) -> Result<Next, Box<Fault>> {
        let target = machine.tail_call_target(self.reg(Reg::R2), self.reg(Reg::R3));
        let image = target.and_then(|program| self.images.get(program.index()));
        match image {
            Some(image) if self.tail_calls < limits::MAX_TAIL_CALLS => {
                self.tail_calls += 1;
                let room = self.stack.reach(machine, self.depth().saturating_sub(1));
                room.map_err(|full| self.fault(at, full.into()))?;
                self.image = image;
                self.leave_to(machine);
                Ok(Next::Goto(0))
            }
            _ => Ok(Next::Follow),
        }
    }

    /// Leaves the innermost frame, with what is in it, to the program that runs now; of
    /// the registers only r1 stays, the context.
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
            // What happened in a callback is told as it is, with its own place.
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
            // What happened in a callback is told as it is, with its own place.
            Err(HelperProblem::Callback(fault)) => Err(fault),
            Err(HelperProblem::Thrown(cookie)) => self.throw(machine, at, cookie),
            Err(problem) => {
                let name = callee.name().to_string();
                Err(self.fault(at, FaultKind::Kfunc { name, problem }))
            }
        }
    }

    /// `bpf_throw`: the innermost main function ends, with what its exception callback
    /// makes of the cookie, or the cookie itself (`kernel/bpf/helpers.c`). All functions
    /// above it end without another instruction.
    fn throw(&mut self, machine: &mut Machine, at: i64, cookie: u64) -> Result<Next, Box<Fault>> {
        let main = self.frames.iter().rposition(|frame| frame.start == 0);
        let above = main.map_or(0, |main| main + 1);
        let mut functions = self.frames.iter().skip(above);
        if functions.any(|frame| frame.return_to == frame.from) {
            return Err(self.fault(at, FaultKind::ThrownInCallback));
        }
        while self.frames.len() > above {
            self.pop_frame(machine);
        }
        let r0 = match exception::callback(self.image.program()) {
            Some(callback) => self.enter(machine, at, callback, [cookie, 0, 0, 0, 0])?,
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

/// The slot as a position; a slot outside of the program, which only a fault
/// names, is 0.
pub(super) fn pc(at: i64) -> Pc {
    Pc(u32::try_from(at).unwrap_or_default())
}

/// The run as a helper sees it.
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
