//! The replay form of a program.
//!
//! | site | recorded | replayed |
//! |---|---|---|
//! | output | entry, then the instruction | the same |
//! | input from the program's own state | the instruction, then an entry | the same, then override with the recorded input |
//! | input from the world | the instruction, then an entry | load the recorded input, then an entry |
//! | effect on the world | entries around the instruction | only the entries |
//! | tail call | to the recorded form of a program | to its replay form |
//!
//! Both forms write their entries with the same code. Kernel memory is replaced by recorded
//! numbers, so a program that reads kernel objects through typed pointers becomes one that any
//! verifier accepts: it runs as a raw tracepoint program, whose context is numbers, too.

use super::calls::{self, Callee};
use super::clear;
use super::context::{Context, is_changing};
use super::emit::{self, Buffer, Log, Saved, Slots};
use super::error::{Reason, Unrecordable};
use super::frame::Frame;
use super::handover::{Way, WaySource};
use super::maps::scratch;
use super::patch::{Block, Patch};
use super::plan::{Called, Function, Plan};
use super::record::Failed;
use super::recorded_inputs::InputReader;
use super::replay_maps::{ReplayMaps, following};
use super::site::{AccessedState, Moment, Site};
use crate::isa::{Insn, JumpOp, Reg, Size};
use crate::program::Program;
use crate::spec::{CallReplay, ProgFlags, ProgType};
use crate::util::Pc;

/// A program's replay form, with the positions of its original instructions.
#[derive(Debug, Clone)]
pub struct ReplayForm {
    /// The program to run.
    pub program: Program,
    /// By original instruction, where its code begins.
    positions: Vec<Pc>,
}

impl ReplayForm {
    /// Where the code for an instruction of the original program begins; the registers have the
    /// original values there.
    #[must_use]
    pub fn place(&self, pc: Pc) -> Option<Pc> {
        self.positions.get(pc.index()).copied()
    }

    /// The last original instruction whose code begins here or before.
    #[must_use]
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        let after = self.positions.partition_point(|position| *position <= pc);
        after.checked_sub(1).map(Pc::from_index)
    }
}

impl Plan {
    /// The replay form: takes its inputs from the world from the recorded log, and writes its
    /// own log, both in the added maps.
    ///
    /// # Errors
    /// [`Unrecordable`] if the additions do not fit.
    pub fn replay(&self, added: &ReplayMaps) -> Result<Program, Unrecordable> {
        self.replay_form(added).map(|form| form.program)
    }

    /// Bytes of context in firings, if `known` bytes of the event were known to the recorder
    /// ([`RecordOptions::context_len`](super::RecordOptions::context_len)).
    #[must_use]
    pub fn context_len(&self, known: u32) -> u32 {
        Context::new(&self.program, self.context, known).len
    }

    /// The replay form with the positions of its instructions.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    pub fn replay_form(&self, added: &ReplayMaps) -> Result<ReplayForm, Unrecordable> {
        form(self, added, None).map_err(|failed| self.unrecordable(failed))
    }

    /// The replay form for prog arrays, of the program with this number: continues a firing of
    /// another program. It has its own name, so that both forms can be in one machine.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    pub fn replay_following(
        &self,
        added: &ReplayMaps,
        number: u32,
    ) -> Result<ReplayForm, Unrecordable> {
        let form = form(self, added, Some(number));
        let mut form = form.map_err(|failed| self.unrecordable(failed))?;
        form.program.name = following(&self.program.name);
        Ok(form)
    }
}

fn form(plan: &Plan, added: &ReplayMaps, follows: Option<u32>) -> Result<ReplayForm, Failed> {
    let log = Log {
        buffer: Buffer::Value(added.log),
        length: scratch::LOG_LEN,
        start: scratch::log_start(0),
        size: scratch::LOG,
        whole: scratch::SIZE,
        capped: None,
    };
    let mut form = Form {
        plan,
        added,
        follows,
        log,
        frames: plan.frames(),
        patch: Patch::default(),
    };
    form.jumps();
    form.sites()?;
    form.silent_calls().map_err(|reason| (None, reason))?;
    clear::insert(plan, &mut form.patch);
    for (frame, function) in form.frames.iter().zip(&plan.functions) {
        let checked = frame.check(&function.name);
        checked.map_err(|reason| (Some(function.start), reason))?;
    }
    let whole = |reason| (None, reason);
    let patched = form.patch.apply(&plan.program, &plan.code);
    let mut program = patched.map_err(whole)?;
    let positions = form
        .patch
        .positions(&plan.program, &plan.code)
        .map_err(whole)?;
    program.maps = added.maps.clone();
    // Copying from the recorded log needs a GPL-only helper.
    "GPL".clone_into(&mut program.license);
    program.flags = ProgFlags::empty();
    if matches!(program.prog_type, ProgType::Tracing | ProgType::Lsm)
        || is_changing(program.prog_type)
    {
        program.prog_type = ProgType::RawTracepoint;
        program.expected_attach_type = None;
        program.attach_btf_id = None;
    }
    Ok(ReplayForm { program, positions })
}

struct Form<'a> {
    plan: &'a Plan,
    added: &'a ReplayMaps,
    /// The program's number, if it is the form for targets of tail calls.
    follows: Option<u32>,
    log: Log,
    /// One for each of the plan's functions.
    frames: Vec<Frame>,
    patch: Patch,
}

/// The slot with the way by which the target of a tail call was entered.
const WAY: u16 = 0;

impl Form<'_> {
    /// Inserts the code before tail calls, and for a target of tail calls its entry and exits.
    fn jumps(&mut self) {
        let plan = self.plan;
        if let (Some(program), Some(main)) = (self.follows, plan.functions.first()) {
            self.follow(main, program);
        }
        for jump in &plan.jumps {
            let number = plan.function_at(jump.pc);
            let Some((number, frame)) = number.and_then(|at| Some((at, self.frames.get_mut(at)?)))
            else {
                continue;
            };
            let is_main = plan.functions.get(number).map(|it| it.called) == Some(Called::Main);
            let says = match (is_main, self.follows) {
                (false, _) => WaySource::Always(Way::Within),
                (true, None) => WaySource::Always(Way::Instead),
                (true, Some(_)) => WaySource::Slot(frame.slot(WAY)),
            };
            let mut block = Block::default();
            self.log
                .hand_over(&mut block, &mut Slots::from(frame, 0), says);
            self.patch.last_before(jump.pc, block);
        }
    }

    /// Inserts the entry and the exits of a target of tail calls.
    fn follow(&mut self, main: &Function, program: u32) {
        let (epilogue, out) = (self.patch.label(), self.patch.label());
        let Some(frame) = self.frames.first_mut() else {
            return;
        };
        let way = frame.slot(WAY);
        let mut slots = Slots::from(frame, WAY + 1);
        let mut entry = Block::default();
        self.log.buffer(&mut entry, &mut slots, Reg::R0);
        self.log.take_over(&mut entry, program, way);
        self.patch.entry(main.start, entry);
        let mut exits = Block::default();
        exits.jump(epilogue);
        for (pc, insn) in self.plan.code.iter() {
            if pc < main.end && insn == Ok(Insn::Exit) {
                self.patch.instead(pc, exits.clone());
            }
        }
        let mut end = Block::default();
        end.bind(epilogue);
        end.load(Size::Dw, Reg::R1, Reg::FP, way);
        end.jump_if(JumpOp::Eq, Reg::R1, 0, out);
        self.log.go_back(&mut end, &mut slots);
        end.bind(out);
        end.push(Insn::Exit);
        self.patch.end(main.start, end);
    }

    /// The first slot that inserted code in a function may use.
    fn first(&self, number: usize) -> u16 {
        let function = self.plan.functions.get(number);
        let is_main = function.is_some_and(|it| it.called == Called::Main);
        u16::from(self.follows.is_some() && is_main)
    }

    /// Inserts the log entries and the loads of recorded inputs.
    fn sites(&mut self) -> Result<(), Failed> {
        for ((pc, moment), sites) in self.plan.sites_by_position() {
            let inserted = match moment {
                Moment::Before => self.before(pc, &sites),
                Moment::After => self.after(pc, &sites),
            };
            inserted.map_err(|reason| (Some(pc), reason))?;
        }
        Ok(())
    }

    /// Inserts the entries of outputs.
    fn before(&mut self, pc: Pc, sites: &[&Site]) -> Result<(), Reason> {
        let Some(function) = self.plan.function_at(pc) else {
            return Ok(());
        };
        let first = self.first(function);
        let Some(frame) = self.frames.get_mut(function) else {
            return Ok(());
        };
        let mut slots = Slots::from(frame, first);
        let mut block = Block::default();
        for site in sites {
            let entry = self
                .log
                .entry(&mut self.patch, &mut slots, site, &Saved::new())?;
            block.append(entry);
        }
        self.patch.before(pc, block);
        if sites
            .iter()
            .any(|site| site.accesses == AccessedState::World)
        {
            self.patch.instead(pc, Block::default());
        }
        Ok(())
    }

    /// Inserts the loads of recorded inputs, and their entries.
    fn after(&mut self, pc: Pc, sites: &[&Site]) -> Result<(), Reason> {
        let Some(function) = self.plan.function_at(pc) else {
            return Ok(());
        };
        let first = self.first(function);
        let (Some(frame), Some(insn)) = (self.frames.get_mut(function), self.plan.code.insn(pc))
        else {
            return Ok(());
        };
        let mut slots = Slots::from(frame, first);
        let mut saving = Block::default();
        let saved = emit::save_arguments(&mut saving, &mut slots, sites);
        let mut block = Block::default();
        let mut end = Block::default();
        let is_world = sites
            .iter()
            .any(|site| site.accesses == AccessedState::World);
        for site in sites {
            let entry = self.log.entry(&mut self.patch, &mut slots, site, &saved)?;
            let mut reader = InputReader {
                maps: self.added,
                patch: &mut self.patch,
                slots: &mut slots,
                site,
                saved: &saved,
            };
            let code = reader.read(insn)?;
            let (first, second) = match is_world {
                true => (code.line, entry),
                false => (entry, code.line),
            };
            block.append(first);
            block.append(second);
            end.append(code.end);
        }
        self.patch.last_before(pc, saving);
        if is_world {
            self.patch.instead(pc, block);
        } else {
            self.patch.after(pc, block);
        }
        if let Some(function) = self.plan.functions.get(function) {
            self.patch.end(function.start, end);
        }
        Ok(())
    }

    /// Removes calls that act on the world and have no site.
    fn silent_calls(&mut self) -> Result<(), Reason> {
        for (pc, insn) in self.plan.code.iter() {
            let Ok(Insn::Call(target)) = insn else {
                continue;
            };
            let Callee::Outside(signature) = calls::callee(&self.plan.program, target)? else {
                continue;
            };
            if matches!(signature.replay, CallReplay::Skip | CallReplay::Effect) {
                self.patch.instead(pc, Block::default());
            }
        }
        Ok(())
    }
}
