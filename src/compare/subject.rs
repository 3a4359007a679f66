//! What an engine is given, and what every engine can do.

use std::fmt::Debug;
use std::sync::Arc;

use thiserror::Error;

use super::answer::Answer;
use crate::r#gen::Made;
use crate::harness;
use crate::program::Program;
use crate::vm::events::Event;

/// Programs that share their maps, and what the first of them runs on.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The one that runs.
    pub program: Arc<Program>,
    /// Those that are there to be jumped to.
    pub others: Vec<Arc<Program>>,
    /// What it runs on.
    pub event: Event,
    /// How many instructions the run may take, where an engine counts them.
    pub budget: Option<u64>,
}

impl Subject {
    /// A program that runs on this event.
    #[must_use]
    pub const fn new(program: Arc<Program>, event: Event) -> Self {
        Self {
            program,
            others: Vec::new(),
            event,
            budget: None,
        }
    }

    /// The same with programs that it may jump to.
    #[must_use]
    pub fn with_others(self, others: Vec<Arc<Program>>) -> Self {
        Self { others, ..self }
    }

    /// The same with no more than so many instructions.
    #[must_use]
    pub fn with_budget(&self, instructions: u64) -> Self {
        Self {
            budget: Some(instructions),
            ..self.clone()
        }
    }

    /// All programs, the one that runs first.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        [&self.program].into_iter().chain(&self.others)
    }
}

impl From<Made> for Subject {
    fn from(made: Made) -> Self {
        let event = Event::input(made.program.prog_type, made.input);
        Self::new(made.program, event).with_others(made.others)
    }
}

/// Why an engine does not run a subject at all. (A run that stops early is an
/// [`Answer`].)
#[derive(Debug, Error)]
pub enum Unable {
    /// It is not there, or knows no such programs.
    #[error("not available here: {0}")]
    Unavailable(String),
    /// The verifier refuses the program.
    #[error("the program is refused: {0}")]
    Refused(String),
    /// The subject makes no sense to it.
    #[error(transparent)]
    Subject(#[from] harness::Error),
}

/// Whatever runs programs.
pub trait Engine: Debug {
    /// What it is called in a table.
    fn name(&self) -> String;

    /// Runs a subject from the start: maps as they are defined, an empty stack.
    ///
    /// # Errors
    /// It can't run at all.
    fn run(&mut self, subject: &Subject) -> Result<Answer, Unable>;
}
