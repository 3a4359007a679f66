//! Prepared runs: everything that is the same in each run of a program on an event that
//! stays in memory is computed once.

use super::checked::{self, Checked, Finished};
use super::fast::Run;
use super::plan::Plan;
use super::stack::Frames;
use crate::lower::Lowered;
use crate::vm::{EngineKind, Fault, Machine, RanOn};

/// Prepared runs of a program, to be started one after another.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made for its runs, and stays where it is"
)]
pub(crate) enum Prepared<'a> {
    /// By the fast interpreter or in machine code.
    Fast(Run<'a>, RanOn),
    /// By the checked interpreter.
    Checked(&'a mut Frames, Plan<'a>, RanOn),
}

impl Prepared<'_> {
    /// Runs the program once, on the machine for which it was prepared.
    #[inline]
    pub(crate) fn start(&mut self, machine: &mut Machine) -> Result<Finished, Box<Fault>> {
        match self {
            Self::Fast(run, _) => run.start(machine),
            Self::Checked(frames, plan, _) => run_checked(frames, machine, *plan),
        }
    }

    /// The engine that runs it, or to which a tail call switched.
    pub(crate) const fn ran_on(&self) -> RanOn {
        match self {
            Self::Fast(run, ran_on) => match run.switched_to {
                Some(switched_to) => switched_to,
                None => *ran_on,
            },
            Self::Checked(_, _, ran_on) => *ran_on,
        }
    }

    /// Moves the context's bytes to another host address.
    pub(crate) const fn move_context(&mut self, host: u64) {
        if let Self::Fast(run, _) = self {
            run.host.context = host;
        }
    }
}

/// Runs a program once on the checked interpreter.
// Cold for the other engines' sake: here an entry is the least part of a run.
#[cold]
fn run_checked(
    frames: &mut Frames,
    machine: &mut Machine,
    plan: Plan<'_>,
) -> Result<Finished, Box<Fault>> {
    let args = [plan.context, 0, 0, 0, 0];
    let (images, entry) = (plan.images, plan.entry);
    checked::start(frames, machine, images, entry, args, plan.budget, None)
}

/// The parameters of a fast run: the operations, the host addresses of the context and of
/// the table of deltas, and the engine.
struct Start<'a> {
    lowered: &'a Lowered,
    hosts: (u64, u64),
    ran_on: RanOn,
}

/// How a program runs on the machine's current event if this engine was chosen: fast, or on
/// the checked interpreter, and why.
fn start_of<'a>(machine: &Machine, plan: Plan<'a>, chosen: EngineKind) -> Result<Start<'a>, RanOn> {
    if chosen == EngineKind::Checked {
        return Err(RanOn::chosen(chosen));
    }
    let ran_on = plan.entry.ran_on_with(chosen, plan.counting);
    let starts = (plan.entry).may_start_fast(plan.images, machine, plan.context);
    let (lowered, context) = starts.map_err(RanOn::checked)?;
    let deltas = machine.space.deltas().host_address();
    Ok(Start {
        lowered,
        hosts: (context.host_address(), deltas),
        ran_on,
    })
}

impl Checked {
    /// Prepares runs on the chosen engine. A program that is not
    /// [lowered](super::Image::lowered), or whose runs [may not
    /// start](crate::lower::Lowered::may_start) on the machine's current event, runs on the
    /// checked interpreter.
    ///
    /// # Errors
    /// [`Fault`] when the machine has no address left for a stack.
    pub(crate) fn prepare<'a>(
        &'a mut self,
        machine: &mut Machine,
        plan: Plan<'a>,
        chosen: EngineKind,
    ) -> Result<Prepared<'a>, Box<Fault>> {
        let frames = self.frames(machine, plan.entry)?;
        Ok(match start_of(machine, plan, chosen) {
            Ok(start) => Prepared::Fast(start.run(frames, plan, machine), start.ran_on),
            Err(ran_on) => Prepared::Checked(frames, plan, ran_on),
        })
    }

    /// Runs a program once as [`prepare`](Self::prepare) would, without moving the `Run`.
    ///
    /// # Errors
    /// As of [`prepare`](Self::prepare), and the program's faults.
    pub(crate) fn run_once(
        &mut self,
        machine: &mut Machine,
        plan: Plan<'_>,
        chosen: EngineKind,
    ) -> Result<(Finished, RanOn), Box<Fault>> {
        let frames = self.frames(machine, plan.entry)?;
        match start_of(machine, plan, chosen) {
            Ok(start) => {
                let mut run = start.run(frames, plan, machine);
                let finished = run.start(machine)?;
                Ok((finished, run.switched_to.unwrap_or(start.ran_on)))
            }
            Err(ran_on) => Ok((run_checked(frames, machine, plan)?, ran_on)),
        }
    }
}

impl<'a> Start<'a> {
    #[inline]
    fn run(&self, frames: &'a mut Frames, plan: Plan<'a>, machine: &Machine) -> Run<'a> {
        let is_native = self.ran_on.engine == EngineKind::Jit;
        Run::new(frames, plan, self.lowered, self.hosts, is_native, machine)
    }
}
