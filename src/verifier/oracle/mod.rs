//! What the walk believed, to be held against what a run does.
//!
//! A [`Trace`] keeps every state that the walk was in, by instruction and by the calls
//! that led there. A run is then right if at each of its instructions some state of that
//! place holds what it has in registers and on the stack ([`Trace::check`]). Whoever runs
//! programs says what a run has ([`Run`]).
//!
//! The walk of a verdict cuts paths off where a kept state covers what *matters*; what
//! doesn't matter is then not what the kept state says. A trace therefore walks on unless
//! a kept state holds everything that the current one does, and it ends at a limit of
//! instructions: beyond it, nothing is claimed ([`Agreement::Unknown`]).

mod holds;
pub(crate) mod record;
mod run;

pub use self::run::{PacketEnds, Run, ValuePlace};

use std::fmt;
use std::sync::Arc;

use self::holds::{Beside, Misfit};
use self::record::{Place, Recording};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::env::Touched;
use crate::verifier::log::StateText;
use crate::verifier::maps::Maps;
use crate::verifier::state::State;

/// Every state that a walk of a program was in.
#[derive(Debug)]
pub struct Trace {
    program: Arc<Program>,
    recording: Recording,
}

/// What a trace says of a run at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// The walk was in a state that holds what the run has.
    Holds,
    /// The walk was cut off by its limit, and nothing that it saw holds this.
    Unknown,
    /// The walk was never in such a state.
    Violated(Box<Violation>),
}

/// A run did what the verifier took to be impossible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The instruction that the run was about to execute.
    pub pc: Pc,
    /// How many states the walk was in there; 0 if it never came there by these calls.
    pub states: usize,
    /// What does not lie in the one of them that holds the most.
    pub what: String,
    /// That state, in the log's notation.
    pub state: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pc,
            states,
            what,
            state,
        } = self;
        match states {
            0 => write!(
                f,
                "instruction {pc}: the walk never came there by these calls"
            ),
            _ => write!(
                f,
                "instruction {pc}: {what}, which none of {states} states holds; \
                 the nearest is{state}"
            ),
        }
    }
}

impl Trace {
    pub(crate) const fn new(program: Arc<Program>, recording: Recording) -> Self {
        Self { program, recording }
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether the walk came to its end, so that what it did not see can't be.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.recording.complete
    }

    /// How many states there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recording.states.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recording.states.is_empty()
    }

    /// Whether a run that is about to execute an instruction has what the walk believed
    /// that it can have.
    #[must_use]
    pub fn check(&self, run: &dyn Run) -> Agreement {
        let base = self.base(run);
        let place = Place {
            root: run.start(base),
            calls: (base + 1..run.depth())
                .filter_map(|frame| run.callsite(frame))
                .collect(),
            pc: run.pc(),
        };
        let states = self.recording.states.get(&place).map_or(&[][..], |v| v);
        let maps = Maps::new(&self.program);
        let maps = &maps;
        let beside = Beside { run, maps, base };
        let mut nearest: Option<(&State, Misfit)> = None;
        for state in states {
            match beside.holds(state, &self.recording.functions) {
                Ok(()) => return Agreement::Holds,
                Err(why) => {
                    if nearest
                        .as_ref()
                        .is_none_or(|(_, best)| why.held > best.held)
                    {
                        nearest = Some((state, why));
                    }
                }
            }
        }
        if !self.is_complete() {
            return Agreement::Unknown;
        }
        let (what, state) = nearest.map_or_else(Default::default, |(state, why)| {
            let text = StateText {
                program: &self.program,
                maps,
                state,
                frame: why.frame,
                touched: Touched::ALL,
            };
            (why.to_string(), text.to_string())
        });
        Agreement::Violated(Box::new(Violation {
            pc: run.pc(),
            states: states.len(),
            what,
            state,
        }))
    }

    /// The frame at which the walk began that saw the innermost one: a global function is
    /// walked on its own, unless a helper calls it back.
    fn base(&self, run: &dyn Run) -> usize {
        let alone = |frame: &usize| {
            let start = run.start(*frame);
            let functions = &self.recording.functions;
            !run.is_callback(*frame)
                && functions
                    .iter()
                    .any(|function| function.start == start && function.global)
        };
        (1..run.depth()).rev().find(alone).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
