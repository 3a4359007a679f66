//! The recorded form of a program.
//!
//! | where | inserted code |
//! |---|---|
//! | the program's entry | check the target, take a sequence number and a free buffer, write the firing's header and the context |
//! | each function's entry | get the buffer's address: from the caller in an unused argument register, or by the same look-ups |
//! | each site | write the log entry |
//! | reservations of ring-buffer records, entries of functions | zero unwritten memory (`clear`) |
//! | before a tail call | write how the target continues (`handover`) |
//! | the program's exit | write the return value, send the firing to the ring buffer, free the buffer |
//!
//! In the form for targets of tail calls, the program's entry looks up the buffer in use as
//! functions do, and appends to its log.
//!
//! Taking a buffer increments the CPU's depth. The word `BUSY` in the buffer is a second lock
//! for programs that can be preempted, whose firings need not end in the reverse order of their
//! starts: a firing that finds its buffer busy is skipped and counted.

use super::clear;
use super::context::{self, Context, is_changing};
use super::emit::{self, Buffer, Log, Saved, Slots, needs_call};
use super::error::{Reason, Unrecordable};
use super::firing::{FiringFlags, offset};
use super::frame::Frame;
use super::maps::{RecordMaps, RecordOptions, scratch, state};
use super::patch::{Block, Label, Patch};
use super::plan::{Called, Function, Plan};
use super::relays::Relay;
use super::site::{Moment, Site};
use crate::isa::{AluOp, AtomicOp, Insn, JumpOp, Reg, RegSet, Size, Width};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::spec::{ProgFlags, ProgType, RingbufQuery};
use crate::util::{MapId, Pc};
use crate::verifier;

/// Why a form can't be built, and where.
pub(super) type Failed = (Option<Pc>, Reason);

impl Plan {
    /// The recorded form: does the same, and sends a [`Firing`](super::Firing) to the ring
    /// buffer for each run in a recorded process.
    ///
    /// # Errors
    /// [`Unrecordable`] if the additions do not fit, or if the program makes tail calls.
    pub fn record(
        &self,
        added: &RecordMaps,
        options: &RecordOptions,
    ) -> Result<Program, Unrecordable> {
        if let Some(jump) = self.jumps().first() {
            return Err(self.unrecordable((Some(jump.pc), Reason::TailCall)));
        }
        self.record_opening(added, options, &Relay::default())
    }

    /// The recorded form of a program whose firings may continue in others.
    ///
    /// # Errors
    /// [`Unrecordable`] if the additions do not fit.
    pub fn record_opening(
        &self,
        added: &RecordMaps,
        options: &RecordOptions,
        relay: &Relay,
    ) -> Result<Program, Unrecordable> {
        let form = form(self, added, options, relay, false);
        form.map_err(|failed| self.unrecordable(failed))
    }

    /// The recorded form for prog arrays: continues a firing of another program.
    ///
    /// # Errors
    /// [`Unrecordable`] if the additions do not fit.
    pub fn record_following(
        &self,
        added: &RecordMaps,
        options: &RecordOptions,
        relay: &Relay,
    ) -> Result<Program, Unrecordable> {
        let form = form(self, added, options, relay, true);
        form.map_err(|failed| self.unrecordable(failed))
    }

    /// Converts a failure to the public error.
    pub(super) fn unrecordable(&self, (pc, reason): Failed) -> Unrecordable {
        Unrecordable {
            program: self.program.name.clone(),
            pc,
            reason,
        }
    }
}

/// Builds the recorded form.
fn form(
    plan: &Plan,
    added: &RecordMaps,
    options: &RecordOptions,
    relay: &Relay,
    follows: bool,
) -> Result<Program, Failed> {
    let read = plan.context.max(relay.reads);
    let context = Context::new(&plan.program, read, options.context_len);
    let room = context.len.max(relay.context_len);
    let start = scratch::log_start(room);
    if start + scratch::LOG > scratch::SIZE {
        return Err((None, Reason::TooLarge(room)));
    }
    let flags = scratch::FIRING + offset::FLAGS;
    let log = Log {
        buffer: Buffer::Slot,
        length: scratch::FIRING + offset::LOG_LEN,
        start,
        size: scratch::LOG,
        whole: scratch::SIZE,
        capped: Some((flags, i32::from(FiringFlags::CAPPED.bits()))),
    };
    let mut form = Form {
        plan,
        added,
        options,
        context,
        room,
        follows,
        log,
        frames: plan.frames(),
        patch: Patch::default(),
    };
    form.functions()?;
    form.sites()?;
    clear::insert(plan, &mut form.patch);
    for (frame, function) in form.frames.iter().zip(&plan.functions) {
        frame
            .check(&function.name)
            .map_err(|reason| (Some(function.start), reason))?;
    }
    let mut program = form
        .patch
        .apply(&plan.program, &plan.code)
        .map_err(|reason| (None, reason))?;
    program.maps = added.maps.clone();
    Ok(program)
}

pub(super) struct Form<'a> {
    pub(super) plan: &'a Plan,
    added: &'a RecordMaps,
    pub(super) options: &'a RecordOptions,
    context: Context,
    /// Bytes of context in its firings: more than its own if they continue in programs that
    /// have more.
    room: u32,
    /// Whether it is the form for targets of tail calls.
    pub(super) follows: bool,
    pub(super) log: Log,
    /// One for each of the plan's functions.
    frames: Vec<Frame>,
    pub(super) patch: Patch,
}

/// The first slot that inserted code at entries and sites may use: slot 0 holds the buffer's
/// address.
pub(super) const FIRST: u16 = 1;
/// The slot with the way by which the target of a tail call was entered.
pub(super) const WAY: u16 = 1;

impl Form<'_> {
    /// Inserts the entries and exits of functions.
    fn functions(&mut self) -> Result<(), Failed> {
        let plan = self.plan;
        for (number, function) in plan.functions.iter().enumerate() {
            match (function.called, spare(function)) {
                (Called::Main, _) if self.follows => self.follow(number, function),
                (Called::Main, _) => self.main(number, function),
                (Called::Directly, Some(reg)) => {
                    let mut block = Block::default();
                    block.store(Size::Dw, Reg::FP, self.frame(number).slot(0), reg);
                    self.patch.entry(function.start, block);
                }
                _ => self.enter_alone(number, function),
            }
        }
        for (pc, insn) in plan.code.iter() {
            self.pass_buffer(pc, insn.ok());
        }
        for jump in &plan.jumps {
            self.hand_over(jump.pc);
        }
        Ok(())
    }

    /// The first slot that inserted code in a function may use.
    fn first(&self, number: usize) -> u16 {
        let function = self.plan.functions.get(number);
        let is_main = function.is_some_and(|it| it.called == Called::Main);
        FIRST + u16::from(self.follows && is_main)
    }

    pub(super) fn frame(&mut self, number: usize) -> &mut Frame {
        // There is one for each function.
        &mut self.frames[number]
    }

    /// Passes the buffer's address in the register that the called function expects.
    fn pass_buffer(&mut self, pc: Pc, insn: Option<Insn>) {
        let plan = self.plan;
        let target = insn
            .filter(Insn::is_call)
            .and_then(|insn| insn.subprogram_target(pc));
        let callee = target.and_then(|to| u32::try_from(to).ok()).map(Pc);
        let callee = callee.and_then(|to| plan.functions.iter().find(|it| it.start == to));
        let caller = plan.function_at(pc);
        let (Some(callee), Some(caller)) = (callee, caller) else {
            return;
        };
        if let (Called::Directly, Some(reg)) = (callee.called, spare(callee)) {
            let mut block = Block::default();
            block.load(Size::Dw, reg, Reg::FP, self.frame(caller).slot(0));
            self.patch.before(pc, block);
        }
    }

    /// Inserts the program's entry and the common exit.
    fn main(&mut self, number: usize, function: &Function) {
        let slot = self.frame(number).slot(0);
        let (skip, outside, epilogue) =
            (self.patch.label(), self.patch.label(), self.patch.label());
        let mut entry = Block::default();
        let (given, pid_tgid, cpu, buffer) = (Reg::R6, Reg::R7, Reg::R8, Reg::R9);
        entry.mov(given, Reg::R1);
        if is_changing(self.plan.program.prog_type) {
            // Nobody's: a packet is processed in any task, and before Linux 6.10 these programs
            // can't ask for it.
            entry.mov(Reg::R0, 0);
        } else {
            entry.call(id::get_current_pid_tgid);
        }
        entry.mov(pid_tgid, Reg::R0);
        if !self.options.all {
            entry.alu(AluOp::Rsh, Reg::R0, 32);
            entry.store(Size::W, Reg::FP, slot, Reg::R0);
            look_up(&mut entry, self.added.targets, slot);
            entry.jump_if(JumpOp::Eq, Reg::R0, 0, outside);
        }
        entry.store(Size::W, Reg::FP, slot, 0);
        look_up(&mut entry, self.added.state, slot);
        entry.jump_if(JumpOp::Eq, Reg::R0, 0, outside);
        entry.mov(cpu, Reg::R0);
        fetch_add(&mut entry, cpu, state::SEQUENCE);
        entry.mov(buffer, Reg::R1);
        fetch_add(&mut entry, cpu, state::DEPTH);
        entry.jump_if(JumpOp::Ge, Reg::R1, imm(scratch::DEPTHS), skip);
        entry.store(Size::W, Reg::FP, slot, Reg::R1);
        look_up(&mut entry, self.added.scratch, slot);
        entry.jump_if(JumpOp::Eq, Reg::R0, 0, skip);
        entry.mov(Reg::R1, 1);
        atomic(&mut entry, AtomicOp::Xchg, Reg::R0, scratch::BUSY);
        entry.jump_if(JumpOp::Ne, Reg::R1, 0, skip);
        entry.store(Size::Dw, Reg::R0, header(offset::SEQUENCE), buffer);
        entry.mov(buffer, Reg::R0);
        entry.load(Size::W, Reg::R1, Reg::FP, slot);
        entry.store(Size::H, buffer, header(offset::DEPTH), Reg::R1);
        entry.store(Size::Dw, buffer, header(offset::PID_TGID), pid_tgid);
        let number = self.options.number.cast_signed();
        entry.store(Size::W, buffer, header(offset::PROGRAM), number);
        entry.store(Size::H, buffer, header(offset::FLAGS), 0);
        let len = imm(self.room);
        entry.store(Size::W, buffer, header(offset::CONTEXT_LEN), len);
        entry.store(Size::Dw, buffer, header(offset::LOG_LEN), 0);
        entry.call(id::get_smp_processor_id);
        entry.store(Size::W, buffer, header(offset::CPU), Reg::R0);
        entry.call(id::ktime_get_ns);
        entry.store(Size::Dw, buffer, header(offset::TIME), Reg::R0);
        // Zero the part of the context that only other programs have.
        let known = self.context.len;
        for off in (known / 8 * 8..self.room)
            .step_by(8)
            .filter(|_| known < self.room)
        {
            entry.store(Size::Dw, buffer, header(offset::CONTEXT + off), 0);
        }
        for &(off, size) in &self.context.pieces {
            entry.load(size, Reg::R1, given, short(off));
            entry.store(size, buffer, header(offset::CONTEXT + off), Reg::R1);
        }
        // As late as possible, so that more firings are known to have ended before.
        entry.map(Reg::R1, self.added.ring);
        entry.mov(Reg::R2, PRODUCED);
        entry.call(id::ringbuf_query);
        entry.store(Size::Dw, buffer, header(offset::PRODUCED), Reg::R0);
        entry.store(Size::Dw, Reg::FP, slot, buffer);
        entry.mov(Reg::R1, given);
        self.patch.entry(function.start, entry);
        self.exits_to(function, epilogue);
        let mut end = Block::default();
        end.bind(skip);
        end.mov(Reg::R1, -1);
        atomic(&mut end, AtomicOp::Add, cpu, state::DEPTH);
        end.mov(Reg::R1, 1);
        atomic(&mut end, AtomicOp::Add, cpu, state::SKIPPED);
        end.bind(outside);
        end.mov(Reg::R0, context::outside(self.plan.program.prog_type));
        end.push(Insn::Exit);
        end.bind(epilogue);
        self.epilogue(&mut end, slot);
        self.patch.end(function.start, end);
    }

    /// Makes all exits of the program jump to its epilogue.
    pub(super) fn exits_to(&mut self, function: &Function, epilogue: Label) {
        let mut exits = Block::default();
        exits.jump(epilogue);
        for (pc, insn) in self.plan.code.iter() {
            if pc < function.end && insn == Ok(Insn::Exit) {
                self.patch.instead(pc, exits.clone());
            }
        }
    }

    /// Sends the firing, and returns the program's return value.
    pub(super) fn epilogue(&mut self, end: &mut Block, slot: i16) {
        let (buffer, sent, returned) = (Reg::R6, Reg::R7, Reg::R9);
        let (fits, counted, out) = (self.patch.label(), self.patch.label(), self.patch.label());
        end.load(Size::Dw, buffer, Reg::FP, slot);
        // Kept in a register, so that the verifier still knows its range.
        end.mov(returned, Reg::R0);
        end.store(Size::Dw, buffer, header(offset::RETURNED), Reg::R0);
        end.load(Size::Dw, Reg::R3, buffer, header(offset::LOG_LEN));
        end.jump_if(JumpOp::Le, Reg::R3, imm(scratch::LOG), fits);
        end.load(Size::H, Reg::R1, buffer, header(offset::FLAGS));
        end.alu(AluOp::Or, Reg::R1, i32::from(FiringFlags::OVERFLOW.bits()));
        end.store(Size::H, buffer, header(offset::FLAGS), Reg::R1);
        end.mov(Reg::R3, 0);
        end.store(Size::Dw, buffer, header(offset::LOG_LEN), Reg::R3);
        end.bind(fits);
        end.alu(AluOp::Add, Reg::R3, imm(self.log.start - scratch::FIRING));
        end.map(Reg::R1, self.added.ring);
        end.mov(Reg::R2, buffer);
        end.alu(AluOp::Add, Reg::R2, imm(scratch::FIRING));
        end.mov(Reg::R4, NO_WAKEUP);
        end.call(id::ringbuf_output);
        end.mov(sent, Reg::R0);
        end.store(Size::W, Reg::FP, slot, 0);
        look_up(end, self.added.state, slot);
        end.jump_if(JumpOp::Eq, Reg::R0, 0, out);
        end.jump_if(JumpOp::Eq, sent, 0, counted);
        end.mov(Reg::R1, 1);
        atomic(end, AtomicOp::Add, Reg::R0, state::LOST);
        end.bind(counted);
        end.store(Size::Dw, buffer, short(scratch::BUSY), 0);
        end.mov(Reg::R1, -1);
        atomic(end, AtomicOp::Add, Reg::R0, state::DEPTH);
        end.bind(out);
        end.mov(Reg::R0, returned);
        end.push(Insn::Exit);
    }

    /// Inserts the entry of a function whose callers can't pass the buffer's address.
    fn enter_alone(&mut self, number: usize, function: &Function) {
        let frame = self.frame(number);
        let slot = frame.slot(0);
        let mut slots = Slots::from(frame, FIRST);
        let mut entry = Block::default();
        // The function has not used its own registers yet. On the stack a pointer to a dynptr would
        // become a number (`is_spillable_regtype`), so only a fifth argument is saved there.
        let homes = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        let kept: Vec<(Reg, Reg)> = function.arguments.iter().zip(homes).collect();
        let fifth = function.arguments.iter().nth(homes.len());
        let fifth = fifth.map(|reg| (reg, slots.take()));
        let task = slots.take();
        for (reg, home) in &kept {
            entry.mov(*home, *reg);
        }
        if let Some((reg, slot)) = fifth {
            entry.store(Size::Dw, Reg::FP, slot, reg);
        }
        let lost = self.find_buffer(&mut entry, slot, task);
        entry.store(Size::Dw, Reg::FP, slot, Reg::R0);
        for (reg, home) in &kept {
            entry.mov(*reg, *home);
        }
        if let Some((reg, slot)) = fifth {
            entry.load(Size::Dw, reg, Reg::FP, slot);
        }
        self.patch.entry(function.start, entry);
        // The buffer is always found; the check is for the verifier.
        let mut end = Block::default();
        end.bind(lost);
        end.mov(Reg::R0, 0);
        end.push(Insn::Exit);
        self.patch.end(function.start, end);
    }

    /// Loads the buffer in use into `r0`; jumps to the returned label if there is none.
    pub(super) fn find_buffer(&mut self, entry: &mut Block, slot: i16, task: i16) -> Label {
        let lost = self.patch.label();
        if may_be_preempted(&self.plan.program) {
            self.find_own(entry, slot, task, lost);
        } else {
            self.find_last(entry, slot, lost);
        }
        lost
    }

    /// Loads the buffer that was taken last on this CPU into `r0`.
    fn find_last(&self, entry: &mut Block, slot: i16, lost: Label) {
        entry.store(Size::W, Reg::FP, slot, 0);
        look_up(entry, self.added.state, slot);
        entry.jump_if(JumpOp::Eq, Reg::R0, 0, lost);
        entry.load(Size::Dw, Reg::R1, Reg::R0, short(state::DEPTH));
        entry.alu(AluOp::Add, Reg::R1, -1);
        entry.store(Size::W, Reg::FP, slot, Reg::R1);
        look_up(entry, self.added.scratch, slot);
        entry.jump_if(JumpOp::Eq, Reg::R0, 0, lost);
    }

    /// Loads the buffer that this thread took last into `r0`; other threads may have taken some
    /// since.
    fn find_own(&mut self, entry: &mut Block, slot: i16, task: i16, lost: Label) {
        let found = self.patch.label();
        entry.call(id::get_current_pid_tgid);
        entry.store(Size::Dw, Reg::FP, task, Reg::R0);
        for depth in (0..scratch::DEPTHS).rev() {
            let other = self.patch.label();
            entry.store(Size::W, Reg::FP, slot, imm(depth));
            look_up(entry, self.added.scratch, slot);
            entry.jump_if(JumpOp::Eq, Reg::R0, 0, lost);
            entry.load(Size::Dw, Reg::R1, Reg::R0, short(scratch::BUSY));
            entry.jump_if(JumpOp::Eq, Reg::R1, 0, other);
            entry.load(Size::Dw, Reg::R1, Reg::R0, header(offset::PID_TGID));
            entry.load(Size::Dw, Reg::R2, Reg::FP, task);
            entry.jump_if(JumpOp::Eq, Reg::R1, Reg::R2, found);
            entry.bind(other);
        }
        entry.jump(lost);
        entry.bind(found);
    }

    /// Inserts the log entries of all sites.
    fn sites(&mut self) -> Result<(), Failed> {
        let gpl = verifier::is_gpl_compatible(&self.plan.program.license);
        for ((pc, moment), sites) in self.plan.sites_by_position() {
            let copies = sites.iter().flat_map(|site| &site.fields).any(needs_call);
            if copies && !gpl {
                return Err((Some(pc), Reason::License));
            }
            self.insert_entries(pc, moment, &sites)
                .map_err(|reason| (Some(pc), reason))?;
        }
        Ok(())
    }

    fn insert_entries(&mut self, pc: Pc, moment: Moment, sites: &[&Site]) -> Result<(), Reason> {
        let Some(number) = self.plan.function_at(pc) else {
            return Ok(());
        };
        let first = self.first(number);
        let Some(frame) = self.frames.get_mut(number) else {
            return Ok(());
        };
        let mut slots = Slots::from(frame, first);
        let mut saving = Block::default();
        let saved = match moment {
            Moment::Before => Saved::new(),
            Moment::After => emit::save_arguments(&mut saving, &mut slots, sites),
        };
        let mut block = Block::default();
        for site in sites {
            block.append(self.log.entry(&mut self.patch, &mut slots, site, &saved)?);
        }
        match moment {
            Moment::Before => self.patch.before(pc, block),
            Moment::After => {
                self.patch.last_before(pc, saving);
                self.patch.after(pc, block);
            }
        }
        Ok(())
    }
}

/// Whether another thread can run the program on the same CPU before it ends: uprobes and
/// sleepable programs. All others run with preemption disabled, or guarded against that.
fn may_be_preempted(program: &Program) -> bool {
    program.prog_type == ProgType::Kprobe || program.flags.contains(ProgFlags::SLEEPABLE)
}

/// A flag of `bpf_ringbuf_output` (`BPF_RB_NO_WAKEUP`): the reader polls.
const NO_WAKEUP: i32 = 1;

/// The argument of `bpf_ringbuf_query` for the producer position.
const PRODUCED: i32 = RingbufQuery::ProdPos as i32;

/// The register in which callers pass the buffer's address: that of an argument that the
/// function does not read.
fn spare(function: &Function) -> Option<Reg> {
    let unread = RegSet::arguments(5).minus(function.reads);
    unread.iter().last()
}

/// `r0 = bpf_map_lookup_elem(map, key)`, with the key in a stack slot.
fn look_up(block: &mut Block, map: MapId, key: i16) {
    block.map(Reg::R1, map);
    block.mov(Reg::R2, Reg::FP);
    block.alu(AluOp::Add, Reg::R2, i32::from(key));
    block.call(id::map_lookup_elem);
}

/// Adds 1 to a word; its old value is in `r1`.
fn fetch_add(block: &mut Block, base: Reg, off: u32) {
    block.mov(Reg::R1, 1);
    atomic(block, AtomicOp::FetchAdd, base, off);
}

/// A 64-bit atomic operation with `r1`.
fn atomic(block: &mut Block, op: AtomicOp, base: Reg, off: u32) {
    block.push(Insn::Atomic {
        op,
        width: Width::W64,
        base,
        off: short(off),
        src: Reg::R1,
    });
}

/// The offset of a part of the firing in the buffer.
fn header(off: u32) -> i16 {
    short(scratch::FIRING + off)
}

/// An offset in a buffer; all are below 32 KiB.
fn short(off: u32) -> i16 {
    i16::try_from(off).unwrap_or(i16::MAX)
}

fn imm(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
