//! What an engine is given, and what every engine can do.

use std::fmt::Debug;
use std::sync::Arc;

use thiserror::Error;

use super::answer::Answer;
use crate::harness;
use crate::program::Program;

/// Programs that share their maps, and what the first of them runs on.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The first one runs; the others are there to be jumped to.
    pub programs: Vec<Arc<Program>>,
    /// A packet for types that get one, else the context:
    /// [`Event::input`](crate::vm::events::Event::input).
    pub input: Vec<u8>,
    /// How many instructions the run may take, where an engine counts them.
    pub budget: Option<u64>,
}

impl Subject {
    /// Programs, of which the first runs on this input.
    #[must_use]
    pub const fn new(programs: Vec<Arc<Program>>, input: Vec<u8>) -> Self {
        Self {
            programs,
            input,
            budget: None,
        }
    }

    /// The same with no more than so many instructions.
    #[must_use]
    pub fn with_budget(&self, instructions: u64) -> Self {
        Self {
            budget: Some(instructions),
            ..self.clone()
        }
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
