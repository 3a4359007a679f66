//! Runs made ready: what is the same in each run of a program on an event that stays
//! where it is, is found out once.

use super::checked::{self, Checked, Finished};
use super::fast::Run;
use super::plan::Plan;
use super::stack::Frames;
use crate::lower::Lowered;
use crate::vm::{Fault, Machine};

/// Runs of a program, to be started one after another.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made for its runs, and stays where it is"
)]
pub(crate) enum Prepared<'a> {
    /// By the fast interpreter or in machine code.
    Fast(Run<'a>),
    /// By the checked interpreter.
    Checked(&'a mut Frames, Plan<'a>),
}

impl Prepared<'_> {
    /// Runs the program once; the machine is that for which it was made ready.
    #[inline]
    pub(crate) fn start(&mut self, machine: &mut Machine) -> Result<Finished, Box<Fault>> {
        match self {
            Self::Fast(run) => run.start(machine),
            Self::Checked(frames, plan) => {
                let args = [plan.context, 0, 0, 0, 0];
                let (images, entry) = (plan.images, plan.entry);
                checked::start(frames, machine, images, entry, args, plan.budget, None)
            }
        }
    }

    /// The context's bytes are at another host address from now on.
    pub(crate) const fn move_context(&mut self, host: u64) {
        if let Self::Fast(run) = self {
            run.host.context = host;
        }
    }
}

/// The operations of a program that may be run fast on the machine's current event, with
/// the host addresses of the context and of the table of deltas.
fn start_of<'a>(machine: &Machine, plan: Plan<'a>, how: How) -> Option<(&'a Lowered, (u64, u64))> {
    let lowered = plan.entry.lowered().filter(|_| how != How::Checked)?;
    let context = lowered.may_start(machine, plan.context)?;
    let deltas = machine.space.deltas().host_address();
    Some((lowered, (context.host_address(), deltas)))
}

/// What is to run a program, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The checked interpreter.
    Checked,
    /// The fast interpreter.
    Fast,
    /// Machine code, or the fast interpreter where a program has none.
    Native,
}

impl Checked {
    /// Makes runs ready. A program that is not [lowered](super::Image::lowered), or whose runs
    /// [may not start](crate::lower::Lowered::may_start) on the machine's current event,
    /// is for the checked interpreter.
    ///
    /// # Errors
    /// [`Fault`] when the machine has no address left for a stack.
    pub(crate) fn prepare<'a>(
        &'a mut self,
        machine: &mut Machine,
        plan: Plan<'a>,
        how: How,
    ) -> Result<Prepared<'a>, Box<Fault>> {
        let frames = self.frames(machine, plan.entry)?;
        Ok(match start_of(machine, plan, how) {
            Some((lowered, hosts)) => {
                let is_native = how == How::Native;
                Prepared::Fast(Run::new(frames, plan, lowered, hosts, is_native, machine))
            }
            None => Prepared::Checked(frames, plan),
        })
    }

    /// Runs a program once, as [`prepare`](Self::prepare) would have it run, without
    /// moving the run about.
    ///
    /// # Errors
    /// As of [`prepare`](Self::prepare), and what the program does that it must not.
    pub(crate) fn run_once(
        &mut self,
        machine: &mut Machine,
        plan: Plan<'_>,
        how: How,
    ) -> Result<Finished, Box<Fault>> {
        let frames = self.frames(machine, plan.entry)?;
        match start_of(machine, plan, how) {
            Some((lowered, hosts)) => {
                let is_native = how == How::Native;
                Run::new(frames, plan, lowered, hosts, is_native, machine).start(machine)
            }
            None => {
                let args = [plan.context, 0, 0, 0, 0];
                checked::start(
                    frames,
                    machine,
                    plan.images,
                    plan.entry,
                    args,
                    plan.budget,
                    None,
                )
            }
        }
    }
}
