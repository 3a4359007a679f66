//! Functions of a program to which other programs are attached: an extension runs in a
//! function's place, tracing programs before and after it (`bpf_trampoline_link_prog`,
//! `kernel/bpf/trampoline.c`). A tail call goes past what is attached to its target, as in the
//! kernel.

use crate::util::Pc;
use crate::vm::attach::Hook;
use crate::vm::events::Event;
use crate::vm::kfuncs::kernel_context;
use crate::vm::{Fault, FaultKind, HelperProblem, Machine, ProgramHandle};

/// What is attached to a function.
#[derive(Debug, Clone)]
pub(crate) enum Attachment {
    /// This extension runs in its place.
    Replaced(ProgramHandle),
    /// Its calls fire an event.
    Traced {
        /// The event, without values.
        event: Event,
        /// The number of its arguments.
        args: usize,
    },
}

/// A function, and what is attached to it.
#[derive(Debug, Clone)]
pub(crate) struct AttachedFunction {
    /// Its first instruction.
    pub start: Pc,
    /// What is attached.
    pub attachment: Attachment,
}

/// A call of a traced function.
#[derive(Debug, Clone)]
pub(super) struct TracedCall(Box<Event>);

/// Why the programs that trace a call did not run, or did not come to their end.
pub(super) enum TraceProblem {
    /// The fault of one of them, with its own position.
    Fault(Box<Fault>),
    /// They could not be run.
    NotRun(String),
}

impl TracedCall {
    /// Runs the programs at the function's entry. `event` has no values yet, `args` are those of
    /// the call. The context is passed as the kernel's object, which tracing programs see.
    pub(super) fn enter(
        machine: &mut Machine,
        event: &Event,
        args: &[u64],
    ) -> Result<Self, TraceProblem> {
        let context = machine.current().map(|current| current.placed.r1());
        let mut event = event.clone();
        for (number, &arg) in (1..).zip(args) {
            let value = match context == Some(arg) {
                true => kernel_context(machine, arg).map_err(TraceProblem::not_run)?,
                false => arg,
            };
            event = event.arg(number, value).map_err(TraceProblem::not_run)?;
        }
        fire(machine, Hook::Fentry, &event)?;
        Ok(Self(Box::new(event)))
    }

    /// Runs the programs at the function's exit.
    pub(super) fn leave(mut self, machine: &mut Machine, r0: u64) -> Result<(), TraceProblem> {
        // A function without a result has no such field.
        let _ = self.0.change("ret", &r0.into());
        fire(machine, Hook::Fexit, &self.0)
    }
}

impl TraceProblem {
    fn not_run(why: impl ToString) -> Self {
        Self::NotRun(why.to_string())
    }

    /// The fault of the calling program, which `fault` makes, or that of the tracing one.
    pub(super) fn at(self, fault: impl FnOnce(FaultKind) -> Box<Fault>) -> Box<Fault> {
        match self {
            Self::Fault(own) => own,
            Self::NotRun(why) => fault(FaultKind::Interrupt(why)),
        }
    }
}

fn fire(machine: &mut Machine, hook: Hook, event: &Event) -> Result<(), TraceProblem> {
    match machine.fire_hook(hook, event) {
        Ok(_) => Ok(()),
        Err(HelperProblem::Callback(fault)) => Err(TraceProblem::Fault(fault)),
        Err(problem) => Err(TraceProblem::not_run(problem)),
    }
}
