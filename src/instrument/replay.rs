//! The replay form of a program.
//!
//! | site | recorded | replayed |
//! |---|---|---|
//! | what is given | an entry, then the instruction | the same |
//! | what is taken from the own memory | the instruction, then an entry | the same, then what the tape has |
//! | what is taken from the world | the instruction, then an entry | what the tape has, then an entry |
//! | what acts on the world | entries around the instruction | the entries |
//! | a tail call | leads to the recorded form of a program | leads to its replay form |
//!
//! Both forms write their entries with the same code. Nothing is left of the kernel's
//! memory but numbers, so a program that looks at kernel objects through typed pointers
//! becomes one that any verifier judges: it runs as a raw tracepoint, whose context is
//! numbers, too.

use super::calls::{self, Callee, Class};
use super::clear;
use super::context::Context;
use super::emit::{self, Buffer, Log, Saved, Slots};
use super::error::{Reason, Unrecordable};
use super::frame::Frame;
use super::handover::{Says, Way};
use super::maps::scratch;
use super::patch::{Block, Patch};
use super::plan::{Called, Function, Plan};
use super::record::Failed;
use super::replay_maps::{ReplayMaps, following};
use super::site::{Moment, Site, Source};
use super::tape::Taker;
use crate::isa::{Insn, JumpOp, Reg, Size};
use crate::program::Program;
use crate::spec::{ProgFlags, ProgType};
use crate::util::Pc;

/// A program's replay form, and where its instructions came to stand.
#[derive(Debug, Clone)]
pub struct ReplayForm {
    /// What runs.
    pub program: Program,
    /// By original instruction, where what stands for it begins.
    places: Vec<Pc>,
}

impl ReplayForm {
    /// Where what stands for an instruction of the original program begins: registers are
    /// those of the original there.
    #[must_use]
    pub fn place(&self, pc: Pc) -> Option<Pc> {
        self.places.get(pc.index()).copied()
    }

    /// The last instruction of the original program that stands here or before.
    #[must_use]
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        let after = self.places.partition_point(|place| *place <= pc);
        after.checked_sub(1).map(Pc::from_index)
    }
}

impl Plan {
    /// The replay form: takes from the tape what the recorded form took from the world, and
    /// writes a log of its own. The maps say how it is run.
    ///
    /// # Errors
    /// [`Unrecordable`] when there is no room for what has to be added.
    pub fn replay(&self, added: &ReplayMaps) -> Result<Program, Unrecordable> {
        self.replay_form(added).map(|form| form.program)
    }

    /// Bytes of the context that firings have, where so many of its event were known to the
    /// recorder ([`RecordOptions::context_len`](super::RecordOptions::context_len)).
    #[must_use]
    pub fn context_len(&self, known: u32) -> u32 {
        Context::new(&self.program, self.context, known).len
    }

    /// The same, with the places of its instructions.
    ///
    /// # Errors
    /// As of [`replay`](Self::replay).
    pub fn replay_form(&self, added: &ReplayMaps) -> Result<ReplayForm, Unrecordable> {
        form(self, added, None).map_err(|failed| self.unrecordable(failed))
    }

    /// The replay form that prog arrays hold, of the program with this number: goes on with a
    /// firing of another one. It has a name of its own, so that both can be in one machine.
    ///
    /// # Errors
    /// As of [`replay`](Self::replay).
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
    let places = form
        .patch
        .places(&plan.program, &plan.code)
        .map_err(whole)?;
    program.maps = added.maps.clone();
    // Copying from the tape asks for it.
    "GPL".clone_into(&mut program.license);
    program.flags = ProgFlags::empty();
    if program.prog_type == ProgType::Tracing {
        program.prog_type = ProgType::RawTracepoint;
        program.expected_attach_type = None;
        program.attach_btf_id = None;
    }
    Ok(ReplayForm { program, places })
}

struct Form<'a> {
    plan: &'a Plan,
    added: &'a ReplayMaps,
    /// The number of a program that tail calls lead to.
    follows: Option<u32>,
    log: Log,
    /// One for each of the plan's functions.
    frames: Vec<Frame>,
    patch: Patch,
}

/// In the frame of a program that tail calls lead to, the slot that says which way it came.
const WAY: u16 = 0;

impl Form<'_> {
    /// What tail calls hand over, and how a program goes on and ends that they lead to.
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
                (false, _) => Says::Always(Way::Within),
                (true, None) => Says::Always(Way::Instead),
                (true, Some(_)) => Says::Slot(frame.slot(WAY)),
            };
            let mut block = Block::default();
            self.log
                .hand_over(&mut block, &mut Slots::from(frame, 0), says);
            self.patch.last_before(jump.pc, block);
        }
    }

    /// The entry and the exits of a program that tail calls lead to.
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

    /// The entries of the log, and what comes from the tape.
    fn sites(&mut self) -> Result<(), Failed> {
        for ((pc, moment), sites) in self.plan.sites_by_place() {
            let place = match moment {
                Moment::Before => self.before(pc, &sites),
                Moment::After => self.after(pc, &sites),
            };
            place.map_err(|reason| (Some(pc), reason))?;
        }
        Ok(())
    }

    /// What is given.
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
        if sites.iter().any(|site| site.source == Source::World) {
            self.patch.instead(pc, Block::default());
        }
        Ok(())
    }

    /// What is taken.
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
        let is_world = sites.iter().any(|site| site.source == Source::World);
        for site in sites {
            let entry = self.log.entry(&mut self.patch, &mut slots, site, &saved)?;
            let mut taker = Taker {
                maps: self.added,
                patch: &mut self.patch,
                slots: &mut slots,
                site,
                saved: &saved,
            };
            let taken = taker.take(insn)?;
            let (first, second) = match is_world {
                true => (taken.line, entry),
                false => (entry, taken.line),
            };
            block.append(first);
            block.append(second);
            end.append(taken.end);
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

    /// Calls that act on the world and of which no entry tells: they are left out.
    fn silent_calls(&mut self) -> Result<(), Reason> {
        for (pc, insn) in self.plan.code.iter() {
            let Ok(Insn::Call(target)) = insn else {
                continue;
            };
            let Callee::Outside(signature) = calls::callee(&self.plan.program, target)? else {
                continue;
            };
            if matches!(signature.class, Class::World | Class::Effect) {
                self.patch.instead(pc, Block::default());
            }
        }
        Ok(())
    }
}
