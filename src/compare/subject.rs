//! What an engine runs, and the trait of all engines.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::answer::Answer;
use crate::r#gen::Made;
use crate::harness::{self, Judged};
use crate::program::Program;
use crate::vm::events::Event;

/// Programs that share their maps, and the event that the first one runs on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Subject {
    /// The program that runs.
    pub program: Arc<Program>,
    /// Programs that it may jump to by tail calls.
    pub others: Vec<Arc<Program>>,
    /// Programs that replace functions of the first one: their
    /// [`attach_prog`](Program::attach_prog) is that very program.
    pub extensions: Vec<Arc<Program>>,
    /// The event.
    pub event: Event,
    /// Limit of executed instructions, on engines that count them.
    pub budget: Option<u64>,
    /// The programs with their verdicts, once an engine has asked for them.
    judged: OnceLock<Vec<Judged>>,
}

impl Subject {
    /// A single program on an event.
    #[must_use]
    pub const fn new(program: Arc<Program>, event: Event) -> Self {
        Self {
            program,
            others: Vec::new(),
            extensions: Vec::new(),
            event,
            budget: None,
            judged: OnceLock::new(),
        }
    }

    /// The same with programs to jump to.
    #[must_use]
    pub fn with_others(self, others: Vec<Arc<Program>>) -> Self {
        Self { others, ..self }
    }

    /// The same with programs that replace functions of the first one.
    #[must_use]
    pub fn with_extensions(self, extensions: Vec<Arc<Program>>) -> Self {
        Self { extensions, ..self }
    }

    /// The same with a limit of executed instructions.
    #[must_use]
    pub fn with_budget(&self, instructions: u64) -> Self {
        Self {
            budget: Some(instructions),
            ..self.clone()
        }
    }

    /// All programs, the one that runs first; extensions are the last.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        [&self.program]
            .into_iter()
            .chain(&self.others)
            .chain(&self.extensions)
    }

    /// All programs with their verdicts. Each is verified once, whatever the number of engines:
    /// also those of a copy of the subject that is made later.
    pub(crate) fn judged(&self) -> Vec<Judged> {
        let judge = || self.programs().cloned().map(Judged::new).collect();
        let known: &Vec<Judged> = self.judged.get_or_init(judge);
        let known_programs = known.iter().map(|judged| Arc::as_ptr(&judged.program));
        // The fields are public: the programs may be others now.
        if known_programs.eq(self.programs().map(Arc::as_ptr)) {
            known.clone()
        } else {
            judge()
        }
    }
}

impl From<Made> for Subject {
    fn from(made: Made) -> Self {
        let event = Event::input(made.program.prog_type, made.input);
        Self::new(made.program, event).with_others(made.others)
    }
}

/// Why an engine can't run a subject at all. (A run that stops early has an [`Answer`].)
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unable {
    /// The engine is not available, or can't run such programs.
    #[error("not available here: {0}")]
    Unavailable(String),
    /// The kernel's verifier rejects the program.
    #[error("the program is rejected: {0}")]
    Refused(String),
    /// The subject is invalid.
    #[error(transparent)]
    Subject(#[from] harness::Error),
}

/// An engine that runs programs.
pub trait Engine: Debug {
    /// Its name in tables.
    fn name(&self) -> String;

    /// Runs a subject with new maps and an empty stack.
    ///
    /// # Errors
    /// It can't run at all.
    fn run(&mut self, subject: &Subject) -> Result<Answer, Unable>;
}
