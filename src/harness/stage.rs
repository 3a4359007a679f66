//! All that is needed to run programs on a machine: who is loaded, who is attached where.
//! A `Vm` lends it for an event; what fires in the middle of a run has a copy.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::attach_point::Attached;
use super::error::{Error, Result, list};
use super::interrupt::{Interrupter, Interrupts};
use super::runner::Runner;
use super::runs::Runs;
use super::scene::Scene;
use super::usdt;
use super::volley::Times;
use crate::interp::{Budget, Checked, Image, Plan};
use crate::isa::low32;
use crate::spec::{AttachType, ProgType};
use crate::util::Errno;
use crate::verifier::Verification;
use crate::vm::attach::{Guard, Hook, MissedWhy, Order, Results, Session, Site, Tally, Then};
use crate::vm::events::{Event, EventKind};
use crate::vm::{
    EngineKind, Fallback, Fire, HelperProblem, Machine, Missed, Outcome, ProgramHandle, Run,
};

/// Programs and where they are attached.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub images: &'a [Arc<Image>],
    pub verifications: &'a [Arc<Verification>],
    pub attached: &'a [Attached],
    pub interrupts: &'a Interrupts,
    pub engine: EngineKind,
    pub budget: Budget,
    /// Where to note what runs take, if somebody wants to know.
    pub times: Option<&'a RefCell<Times>>,
}

/// The same with its own copies, for events in the middle of runs.
pub(super) struct Troupe {
    pub images: Vec<Arc<Image>>,
    pub verifications: Vec<Arc<Verification>>,
    pub attached: Vec<Attached>,
    pub interrupts: Interrupts,
    pub engine: EngineKind,
    pub budget: Budget,
}

/// A program that an event hits.
#[derive(Debug, Clone, Copy)]
struct Hit {
    hook: Hook,
    attach_type: Option<AttachType>,
    program: ProgramHandle,
    cookie: u64,
}

impl Hit {
    /// Whether both are on one list.
    fn is_beside(&self, other: &Self) -> bool {
        (self.hook, self.attach_type) == (other.hook, other.attach_type)
    }
}

/// Most events hit few.
type Hits = SmallVec<[Hit; 4]>;

/// A run's place among those of an event.
struct Turn {
    program: ProgramHandle,
    cookie: u64,
    guard: Guard,
    session: Option<Session>,
    retval: i32,
    /// Whether the event is a marker of user space.
    is_marker: bool,
}

impl Turn {
    /// That of a program that runs on an event alone, wherever it is attached.
    fn alone(program: ProgramHandle, event: &Event) -> Self {
        Self {
            program,
            cookie: 0,
            guard: Guard::None,
            session: None,
            retval: event.kern().retval,
            is_marker: event.kind() == EventKind::Usdt,
        }
    }

    /// Says what helpers know of the place.
    fn describe(&self, image: &Image, site: &mut Site) {
        let program = image.program();
        site.cookie = if self.is_marker {
            // libbpf has its own use for it (`usdt.bpf.h`).
            usdt::spec_id(self.program).into()
        } else {
            self.cookie
        };
        site.attach_type = program.expected_attach_type;
        site.session = self.session;
        site.retval = self.retval;
    }
}

impl<'a> Stage<'a> {
    /// The loaded form of a program.
    pub fn image(&self, program: ProgramHandle) -> Result<&'a Arc<Image>> {
        let image = self.images.get(program.index());
        image.ok_or_else(|| self.no_program(&format!("#{}", program.0)))
    }

    /// The error for a program that is not loaded.
    pub fn no_program(&self, name: &str) -> Error {
        let names = self
            .images
            .iter()
            .map(|image| image.program().name.as_str());
        Error::NoProgram {
            name: name.to_owned(),
            there: list(names),
        }
    }

    /// Whether a tracepoint has all that a verified program reads of it. The kernel
    /// looks when the program is attached (`perf_event_set_bpf_prog`,
    /// `kernel/events/core.c`; `__bpf_probe_register`, `kernel/trace/bpf_trace.c`).
    pub fn check_context(&self, program: ProgramHandle, event: &Event) -> Result<()> {
        let verification = self.verifications.get(program.index());
        let Some(known) = verification.map(|known| &known.outcome) else {
            return Ok(());
        };
        let (Ok(verified), Some(there)) = (known, event.readable()) else {
            return Ok(());
        };
        let image = verified.program();
        let errno = match image.prog_type {
            ProgType::Tracepoint => Errno::EACCES,
            ProgType::RawTracepoint => Errno::EINVAL,
            _ => return Ok(()),
        };
        let needed = verified.requirements().context;
        if needed <= there {
            return Ok(());
        }
        Err(Error::Context {
            program: image.name.clone(),
            event: event.name().to_owned(),
            needed,
            there,
            errno,
        })
    }

    /// Runs of a program on an event that stays in memory.
    pub fn runner<'v>(
        self,
        machine: &'v mut Machine,
        checked: &'v mut Checked,
        program: ProgramHandle,
        event: &Event,
    ) -> Result<Runner<'v>>
    where
        'a: 'v,
    {
        let scene = self.scene_alone(machine, program, event)?;
        let runs = self.runs(scene.machine, checked, program, event, scene.context)?;
        Ok(Runner::new(scene, runs))
    }

    /// The same on an event that is the machine's current one and has its context at
    /// `context`.
    pub fn runs<'v>(
        self,
        machine: &mut Machine,
        checked: &'v mut Checked,
        program: ProgramHandle,
        event: &Event,
        context: u64,
    ) -> Result<Runs<'v>>
    where
        'a: 'v,
    {
        let entry = self.image(program)?;
        let prepared = checked.prepare(machine, self.plan(entry, context), self.engine)?;
        Ok(Runs::new(
            machine,
            prepared,
            context,
            entry.program(),
            event,
        ))
    }

    /// Puts an event into memory for a program that is there alone.
    pub fn scene_alone<'v>(
        &self,
        machine: &'v mut Machine,
        program: ProgramHandle,
        event: &Event,
    ) -> Result<Scene<'v>> {
        self.scene(machine, &Turn::alone(program, event), event)
    }

    /// Puts an event into memory for a program.
    fn scene<'v>(&self, machine: &'v mut Machine, turn: &Turn, event: &Event) -> Result<Scene<'v>> {
        let entry = self.image(turn.program)?;
        self.check_context(turn.program, event)?;
        if turn.is_marker {
            usdt::fill(machine, entry, turn.program, event, turn.cookie)?;
        }
        let mut scene = Scene::new(machine, entry.program().prog_type, event)?;
        if let Some(site) = scene.site() {
            turn.describe(entry, site);
        }
        Ok(scene)
    }

    /// How a program is to run on a context that is in memory.
    fn plan(&self, entry: &'a Arc<Image>, context: u64) -> Plan<'a> {
        Plan {
            images: self.images,
            entry,
            context,
            budget: self.budget,
        }
    }

    /// Fires an event for the programs that are attached where it happens: what comes of
    /// it goes into a new outcome.
    pub fn fire(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let attached = self.attached.iter();
        let hit = attached.filter(|attached| attached.point.is_hit_by(event));
        let hits = hit.map(|attached| Hit {
            hook: attached.point.hook,
            attach_type: attached.point.attach_type,
            program: attached.program,
            cookie: attached.cookie,
        });
        self.run_lists(machine, checked, hits.collect(), event, outcome)
    }

    /// The same for these programs, as if they were attached there.
    pub fn fire_for(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        programs: &[ProgramHandle],
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let hits = programs.iter().map(|program| {
            let image = self.image(*program)?;
            let (hook, attach_type) = Hook::place_of(image.program());
            Ok(Hit {
                hook,
                attach_type,
                program: *program,
                cookie: 0,
            })
        });
        let hits = hits.collect::<Result<_>>()?;
        self.run_lists(machine, checked, hits, event, outcome)
    }

    /// Runs programs that an event hits, given in the order of attachment: one hook's
    /// after the other's.
    fn run_lists(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        mut hits: Hits,
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<()> {
        outcome.passed = true;
        let mut returned = None;
        sort(&mut hits);
        for list in hits.chunk_by(Hit::is_beside) {
            let Some(Hit { hook, .. }) = list.first().copied() else {
                continue;
            };
            let seen = result_seen(hook, event, returned);
            let tally = self.run_list(machine, checked, hook, list, &seen, outcome)?;
            outcome.passed &= tally.passes();
            outcome.verdict = tally.verdict().or(outcome.verdict);
            if hook.modifies_return() && !tally.passes() {
                returned = tally.verdict();
            }
        }
        if event.kind() == EventKind::Tracepoint && hits.is_empty() {
            outcome.verdict = Some(1);
        }
        Ok(())
    }

    /// Runs the programs of one hook.
    fn run_list(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        hook: Hook,
        list: &[Hit],
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<Tally> {
        let rule = hook.rule();
        let mut tally = Tally::new(rule.results);
        if let Err(why) = machine.guards().enter_list(rule.guard) {
            tally.skip();
            for hit in list {
                self.miss(hit.program, why, outcome);
            }
            return Ok(tally);
        }
        let mut retval = event.kern().retval;
        let mut result = Ok(());
        for hit in list {
            let turn = Turn {
                program: hit.program,
                cookie: hit.cookie,
                guard: rule.guard,
                session: None,
                retval,
                is_marker: event.kind() == EventKind::Usdt,
            };
            match self.take_turn(machine, checked, turn, hook, event, outcome) {
                Ok(None) => {}
                Ok(Some((r0, said))) => {
                    retval = said;
                    let selects = outcome.kern.socket.is_some();
                    let then = tally.add(r0, &mut retval, selects);
                    // `aggr_pre_handler`: the others don't see a call that was overridden.
                    let overridden = hook == Hook::Kprobe && outcome.overridden.is_some();
                    if then == Then::End || overridden {
                        break;
                    }
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        machine.guards().leave_list(rule.guard);
        result.map(|()| tally)
    }

    fn miss(&self, program: ProgramHandle, why: MissedWhy, outcome: &mut Outcome) {
        let image = self.images.get(program.index());
        let program = image.map_or_else(String::new, |image| image.program().name.clone());
        outcome.missed.push(Missed { program, why });
    }

    /// Runs one of them, unless it is not its turn: r0, and what it set as the return
    /// value of the hook.
    fn take_turn(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        mut turn: Turn,
        hook: Hook,
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<Option<(u64, i32)>> {
        let program = turn.program;
        if let Err(why) = machine.guards().enter_program(turn.guard, program) {
            self.miss(program, why, outcome);
            return Ok(None);
        }
        let is_session = hook.rule().results == Results::Session;
        let returns = matches!(event.kind(), EventKind::Kretprobe | EventKind::Uretprobe);
        let mut runs = true;
        if is_session {
            let (sessions, space) = machine.sessions();
            turn.session = if returns {
                sessions.resume(space, program, event.name())?
            } else {
                Some(sessions.enter(space, program, event.name())?)
            };
            runs = turn.session.is_some();
        }
        let result = if runs {
            self.run_on(machine, checked, &turn, event, outcome)
                .map(Some)
        } else {
            Ok(None)
        };
        if is_session {
            let (sessions, space) = machine.sessions();
            match &result {
                Ok(Some((r0, _))) if !returns => sessions.decide(program, low32(*r0)),
                _ if returns => sessions.leave(space, program, event.name()),
                _ => {}
            }
        }
        machine.guards().leave_program(turn.guard, program);
        result
    }

    /// Runs a program on an event, and adds what came of it to an outcome: r0, and the
    /// return value of the hook as it is now. With events in the middle the checked
    /// interpreter runs it, which can be watched.
    fn run_on(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        turn: &Turn,
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<(u64, i32)> {
        let program = turn.program;
        let entry = self.image(program)?;
        let mut scene = self.scene(machine, turn, event)?;
        let (machine, context) = (&mut *scene.machine, scene.context);
        let plan = self.plan(entry, context);
        let finished = match (self.interrupts.is_empty(), self.times) {
            (true, None) => checked.run_once(machine, plan, self.engine),
            (true, Some(times)) => {
                let mut runs = checked.prepare(machine, plan, self.engine)?;
                let finished = Times::note(times, program, || runs.start(machine));
                finished.map(|finished| (finished, runs.ran_on()))
            }
            (false, times) => {
                let args = [context, 0, 0, 0, 0];
                let mut watch = Interrupter::new(self.interrupts);
                let (images, budget) = (self.images, self.budget);
                let mut run =
                    || checked.run_watched(machine, images, entry, args, budget, &mut watch);
                let finished = match times {
                    Some(times) => Times::note(times, program, run),
                    None => run(),
                };
                finished.map(|finished| (finished, self.engine.unless(Fallback::Watched)))
            }
        };
        let retval = scene.site().map_or(0, |site| site.retval);
        scene.collect(outcome);
        let (finished, ran_on) = finished?;
        outcome.runs.push(Run {
            program: entry.program().name.clone(),
            r0: finished.r0,
            insns: finished.insns,
            ran_on,
        });
        Ok((finished.r0, retval))
    }

    /// Runs one program on an event, wherever it is attached, and whoever is active.
    pub fn run_alone(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        program: ProgramHandle,
        event: &Event,
    ) -> Result<Outcome> {
        let mut outcome = machine.outcome();
        let turn = Turn::alone(program, event);
        let (r0, _) = self.run_on(machine, checked, &turn, event, &mut outcome)?;
        outcome.passed = low32(r0) != 0;
        Ok(outcome)
    }
}

/// Puts the lists of hooks behind one another, and each into the order in which it runs.
fn sort(hits: &mut Hits) {
    if hits.len() < 2 {
        return;
    }
    // Stable: the others of a list stay in the order of attachment.
    hits.sort_by_key(|hit| (hit.hook, hit.attach_type.map(AttachType::number)));
    for list in hits.chunk_by_mut(|one, other| one.hook == other.hook) {
        if list
            .first()
            .is_some_and(|hit| hit.hook.rule().order == Order::Last)
        {
            list.reverse();
        }
    }
}

/// An event as the programs of a hook see it: those that may change what a function
/// returns see 0, those after it what became of it.
fn result_seen<'e>(hook: Hook, event: &'e Event, returned: Option<i64>) -> Cow<'e, Event> {
    let value = match (hook, returned) {
        (Hook::FmodRet | Hook::Lsm | Hook::LsmCgroup, _) => 0,
        (Hook::Fexit, Some(value)) => value,
        _ => return Cow::Borrowed(event),
    };
    let mut changed = event.clone();
    match changed.change("ret", &value.into()) {
        Ok(()) => Cow::Owned(changed),
        // A function that returns nothing.
        Err(_) => Cow::Borrowed(event),
    }
}

impl Troupe {
    fn stage(&self) -> Stage<'_> {
        Stage {
            images: &self.images,
            verifications: &self.verifications,
            attached: &self.attached,
            interrupts: &self.interrupts,
            engine: self.engine,
            budget: self.budget,
            times: None,
        }
    }
}

impl Fire for Troupe {
    fn fire(
        &self,
        machine: &mut Machine,
        event: &Event,
    ) -> std::result::Result<Outcome, HelperProblem> {
        // The frames of the run around it are in use.
        let mut checked = Checked::new();
        let mut outcome = machine.outcome();
        let stage = self.stage();
        let fired = stage.fire(machine, &mut checked, event, &mut outcome);
        checked.retire(machine);
        fired.map_err(|error| match error {
            Error::Fault(fault) => HelperProblem::Callback(fault),
            error => HelperProblem::Other(error.to_string()),
        })?;
        if outcome.passed {
            outcome.sample = {
                let pid = machine.world.task().pid().cast_signed();
                event.clone().into_sample(pid)
            };
        }
        Ok(outcome)
    }
}
