//! Runs the attached programs on an event. A [`Dispatcher`] borrows the programs of a `Vm`; a
//! [`NestedDispatcher`] shares them, for events that fire in the middle of a run.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::{Error, Result};
use super::fire_report::Times;
use super::interrupt::Interrupter;
use super::placed_event::PlacedEvent;
use super::programs::Programs;
use super::runner::Runner;
use super::runs::Runs;
use super::usdt;
use crate::engine::{Checked, Image, Plan};
use crate::isa::low32;
use crate::spec::{AttachType, ProgType};
use crate::util::Errno;
use crate::vm::attach::{Guard, Hook, MissedWhy, Order, Results, Session, Site, Tally, Then};
use crate::vm::events::{Event, EventKind};
use crate::vm::{Fallback, Fire, HelperProblem, Machine, Missed, Outcome, ProgramHandle, Run};

/// The loaded programs, where they are attached, and how to run them.
#[derive(Clone, Copy)]
pub(super) struct Dispatcher<'a> {
    pub programs: &'a Programs,
    /// Records the time of each run, if set.
    pub times: Option<&'a RefCell<Times>>,
}

/// Fires events for these programs in the middle of a run.
pub(super) struct NestedDispatcher(pub Arc<Programs>);

/// A program that an event hits.
#[derive(Debug, Clone, Copy)]
struct Hit {
    hook: Hook,
    attach_type: Option<AttachType>,
    program: ProgramHandle,
    cookie: u64,
}

impl Hit {
    /// Whether both programs are on the list of the same hook.
    fn is_beside(&self, other: &Self) -> bool {
        (self.hook, self.attach_type) == (other.hook, other.attach_type)
    }
}

/// Most events hit few programs.
type Hits = SmallVec<[Hit; 4]>;

/// A program's run within an event.
struct Turn {
    program: ProgramHandle,
    cookie: u64,
    guard: Guard,
    session: Option<Session>,
    retval: i32,
    /// Whether the event is a USDT probe.
    is_usdt: bool,
}

impl Turn {
    /// A run of a single program, regardless of its attachments.
    fn alone(program: ProgramHandle, event: &Event) -> Self {
        Self {
            program,
            cookie: 0,
            guard: Guard::None,
            session: None,
            retval: event.kern().retval,
            is_usdt: event.kind() == EventKind::Usdt,
        }
    }

    /// Sets what helpers can read about the attach point.
    fn describe(&self, image: &Image, site: &mut Site) {
        let program = image.program();
        site.cookie = if self.is_usdt {
            // libbpf passes the number of a specification as the cookie (`usdt.bpf.h`).
            usdt::spec_id(self.program).into()
        } else {
            self.cookie
        };
        site.attach_type = program.expected_attach_type;
        site.session = self.session;
        site.retval = self.retval;
    }
}

impl<'a> Dispatcher<'a> {
    /// The loaded form of a program.
    pub fn image(&self, program: ProgramHandle) -> Result<&'a Arc<Image>> {
        self.programs.image(program)
    }

    /// Checks that a tracepoint has all bytes that a verified program reads. The kernel
    /// checks this when the program is attached (`perf_event_set_bpf_prog`,
    /// `kernel/events/core.c`; `__bpf_probe_register`, `kernel/trace/bpf_trace.c`).
    pub fn check_context(&self, program: ProgramHandle, event: &Event) -> Result<()> {
        let verification = self.programs.verifications.get(program.index());
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

    /// Prepares runs of a program on an event that stays in memory.
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
        let placed = self.place_event_alone(machine, program, event)?;
        let runs = self.runs(placed.machine, checked, program, event, placed.context)?;
        Ok(Runner::new(placed, runs))
    }

    /// The same on the machine's current event, whose context is at `context`.
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
        let prepared = checked.prepare(machine, self.plan(entry, context), self.programs.engine)?;
        Ok(Runs::new(
            machine,
            prepared,
            context,
            entry.program(),
            event,
        ))
    }

    /// Places an event in memory for the run of a single program.
    pub fn place_event_alone<'v>(
        &self,
        machine: &'v mut Machine,
        program: ProgramHandle,
        event: &Event,
    ) -> Result<PlacedEvent<'v>> {
        self.place_event(machine, &Turn::alone(program, event), event)
    }

    /// Places an event in memory for a program's run.
    fn place_event<'v>(
        &self,
        machine: &'v mut Machine,
        turn: &Turn,
        event: &Event,
    ) -> Result<PlacedEvent<'v>> {
        let entry = self.image(turn.program)?;
        self.check_context(turn.program, event)?;
        if turn.is_usdt {
            usdt::fill(machine, entry, turn.program, event, turn.cookie)?;
        }
        let mut placed = PlacedEvent::new(machine, entry.program().prog_type, event)?;
        if let Some(site) = placed.site() {
            turn.describe(entry, site);
        }
        Ok(placed)
    }

    /// How to run a program on a context in memory.
    fn plan(&self, entry: &'a Arc<Image>, context: u64) -> Plan<'a> {
        Plan {
            images: &self.programs.images,
            entry,
            context,
            budget: self.programs.budget,
            counting: self.programs.counting,
        }
    }

    /// Fires an event for the programs attached to its hooks, or to one hook only; the results
    /// go into a new outcome.
    pub fn fire(
        &self,
        machine: &mut Machine,
        checked: &mut Checked,
        event: &Event,
        only: Option<Hook>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let attached = self.programs.attached.iter();
        let hit = attached.filter(|attached| {
            only.is_none_or(|hook| attached.point.hook == hook) && attached.point.is_hit_by(event)
        });
        let hits = hit.map(|attached| Hit {
            hook: attached.point.hook,
            attach_type: attached.point.attach_type,
            program: attached.program,
            cookie: attached.cookie,
        });
        self.run_lists(machine, checked, hits.collect(), event, outcome)
    }

    /// The same for these programs, as if they were attached to the event's hook.
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

    /// Runs the programs that an event hits, given in the order of attachment: one hook's
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
                is_usdt: event.kind() == EventKind::Usdt,
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
        let image = self.programs.images.get(program.index());
        let program = image.map_or_else(String::new, |image| image.program().name.clone());
        outcome.missed.push(Missed { program, why });
    }

    /// Runs one program unless a guard or its session skips it. Returns r0 and the hook's
    /// return value as set by the program.
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

    /// Runs a program on an event, and adds the results to an outcome. Returns r0 and the
    /// hook's return value as it is now. With interrupts the checked interpreter runs it,
    /// since it can be watched.
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
        let mut placed = self.place_event(machine, turn, event)?;
        let (machine, context) = (&mut *placed.machine, placed.context);
        let plan = self.plan(entry, context);
        let finished = match (self.programs.interrupts.is_empty(), self.times) {
            (true, None) => checked.run_once(machine, plan, self.programs.engine),
            (true, Some(times)) => {
                let mut runs = checked.prepare(machine, plan, self.programs.engine)?;
                let finished = Times::note(times, program, || runs.start(machine));
                finished.map(|finished| (finished, runs.ran_on()))
            }
            (false, times) => {
                let args = [context, 0, 0, 0, 0];
                let mut watch = Interrupter::new(&self.programs.interrupts);
                let (images, budget) = (&self.programs.images, self.programs.budget);
                let mut run =
                    || checked.run_watched(machine, images, entry, args, budget, &mut watch);
                let finished = match times {
                    Some(times) => Times::note(times, program, run),
                    None => run(),
                };
                finished.map(|finished| (finished, self.programs.engine.unless(Fallback::Watched)))
            }
        };
        if let Ok((finished, _)) = &finished {
            placed.machine.take_returned(finished.r0);
        }
        let retval = placed.site().map_or(0, |site| site.retval);
        placed.collect(outcome);
        let (finished, ran_on) = finished?;
        outcome.runs.push(Run {
            program: entry.program().name.clone(),
            r0: finished.r0,
            insns: finished.insns,
            ran_on,
        });
        Ok((finished.r0, retval))
    }

    /// Runs one program on an event, regardless of its attachments and of active guards.
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

/// Sorts the hits by hook, and each hook's list into its running order.
fn sort(hits: &mut Hits) {
    if hits.len() < 2 {
        return;
    }
    // The sort is stable: within a list, the order of attachment stays.
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

/// The event as a hook's programs see it: programs that may change a function's return
/// value see 0, later ones the changed value.
fn result_seen<'e>(hook: Hook, event: &'e Event, returned: Option<i64>) -> Cow<'e, Event> {
    let value = match (hook, returned) {
        (Hook::FmodRet | Hook::Lsm | Hook::LsmCgroup, _) => 0,
        (Hook::Fexit, Some(value)) => value,
        _ => return Cow::Borrowed(event),
    };
    let mut changed = event.clone();
    match changed.change("ret", &value.into()) {
        Ok(()) => Cow::Owned(changed),
        // The function returns nothing.
        Err(_) => Cow::Borrowed(event),
    }
}

impl Fire for NestedDispatcher {
    fn fire(
        &self,
        machine: &mut Machine,
        event: &Event,
        only: Option<Hook>,
    ) -> std::result::Result<Outcome, HelperProblem> {
        // The frames of the outer run are in use.
        let mut checked = Checked::new();
        let mut outcome = machine.outcome();
        let dispatcher = Dispatcher {
            programs: &self.0,
            times: None,
        };
        let fired = dispatcher.fire(machine, &mut checked, event, only, &mut outcome);
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
