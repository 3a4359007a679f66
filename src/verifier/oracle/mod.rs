//! The oracle: compares the explored states of a program with actual runs.
//!
//! A [`Trace`] has every explored state, by instruction and call chain. A run is consistent
//! if at each of its instructions, some state there contains its registers and stack
//! ([`Trace::check`]). An engine provides the run's values by implementing [`Run`].
//!
//! Normal pruning ignores dead registers and imprecise scalars, so a pruned run may differ
//! from the recorded states in these. While recording, a state is therefore pruned only if
//! an explored state subsumes all of it. A trace ends at a limit of states: beyond it,
//! nothing is claimed ([`Agreement::Unknown`]).

mod holds;
mod objects;
pub(crate) mod record;
mod run;

pub use self::run::{Held, HeldDynptr, HeldIterator, ObjectPlace, PacketEnds, Run, ValuePlace};

use std::fmt;
use std::sync::Arc;

use self::holds::{Comparison, Mismatch};
use self::record::{ProgramPoint, Recorded, Recording};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::log::{StateText, Touched};
use crate::verifier::maps::Maps;

/// Every explored state of a program.
#[derive(Debug)]
pub struct Trace {
    program: Arc<Program>,
    recording: Recording,
}

/// The result of checking a run at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// Some explored state contains the run's values.
    Holds,
    /// Exploration stopped at its limit, and no explored state contains the run's values.
    Unknown,
    /// No explored state contains the run's values.
    Violated(Box<Violation>),
}

/// A run reached a state that the verifier considers impossible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The next instruction of the run.
    pub pc: Pc,
    /// The number of explored states there; 0 if no path reached it by these calls.
    pub states: usize,
    /// The first mismatch with the state that matches the most.
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
                "instruction {pc}: no explored path reaches it through these calls"
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

    /// Whether exploration was complete, so that all other states are impossible.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.recording.complete
    }

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recording.len()
    }

    /// Whether there are no states.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that some explored state contains the values of a run before its next
    /// instruction.
    #[must_use]
    pub fn check(&self, run: &dyn Run) -> Agreement {
        let base = self.base(run);
        let point = ProgramPoint {
            root: run.start(base),
            calls: (base + 1..run.depth())
                .filter_map(|frame| run.callsite(frame))
                .collect(),
            pc: run.pc(),
        };
        let mut comparison = Comparison::new(run, &self.program, base);
        let mut nearest: Option<(&Recorded, Mismatch)> = None;
        let mut states = 0;
        for state in self.recording.at(&point) {
            states += 1;
            match comparison.holds(state, &self.recording) {
                Ok(()) => return Agreement::Holds,
                Err(why) => {
                    if nearest
                        .as_ref()
                        .is_none_or(|(_, best)| why.matched > best.matched)
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
                maps: &Maps::new(&self.program),
                state: &self.recording.pools.restored(&state.state),
                frame: why.frame,
                touched: Touched::ALL,
            };
            (why.to_string(), text.to_string())
        });
        Agreement::Violated(Box::new(Violation {
            pc: run.pc(),
            states,
            what,
            state,
        }))
    }

    /// The frame at which exploration of the innermost one began: a global function is
    /// explored on its own, unless it is a callback.
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
